#pragma once
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/support/explorer.hpp"

/// The explorer's memory: every value that a word ever had, in order, and what a thread knows of them.
namespace feedrate::test {

constexpr std::size_t kMostLocations = 72;
constexpr std::size_t kMostThreads = 8;

/// A count of each thread's plain loads, and by location the oldest value that may still be read.
struct View {
  std::array<std::uint8_t, kMostThreads> loads{};
  std::array<std::uint8_t, kMostLocations> at{};

  void join(const View& other) {
    for (std::size_t i = 0; i < loads.size(); ++i) loads[i] = std::max(loads[i], other.loads[i]);
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = std::max(at[i], other.at[i]);
  }
  /// Keeps what both know.
  void meet(const View& other) {
    for (std::size_t i = 0; i < loads.size(); ++i) loads[i] = std::min(loads[i], other.loads[i]);
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = std::min(at[i], other.at[i]);
  }
};

/// The threads in the order in which a state names them: an exchange of threads that are alike.
using ThreadOrder = std::array<std::uint8_t, kMostThreads>;
using PerThread = std::array<std::uint8_t, kMostThreads>;
inline PerThread reordered(const PerThread& values, const ThreadOrder& order) {
  PerThread result;
  for (std::size_t t = 0; t < kMostThreads; ++t) result[t] = values[order[t]];
  return result;
}

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) { return mix64(hash ^ value) + hash; }
inline std::uint64_t mix_locations(std::uint64_t hash, const View& view, std::size_t locations) {
  const auto words = std::bit_cast<std::array<std::uint64_t, kMostLocations / 8>>(view.at);
  for (std::size_t i = 0; i < (locations + 7) / 8; ++i) hash = mix(hash, words[i]);
  return hash;
}
inline std::uint64_t mix(std::uint64_t hash, const View& view, std::size_t locations, const ThreadOrder& order) {
  return mix_locations(mix(hash, std::bit_cast<std::uint64_t>(reordered(view.loads, order))), view, locations);
}

class ModelWords {
 public:
  /// A location's values are numbered from 0, its initial one, on; there are at most so many.
  static constexpr std::size_t kMostValues = 255;

  void declare(const void* address, std::string name, Explorer::Word kind, ModelValue initial);
  /// Back to the initial values.
  void reset();
  std::optional<std::size_t> find(const void* address) const;
  std::size_t size() const { return locations_.size(); }
  const std::string& name(std::size_t l) const { return locations_[l].name; }
  Explorer::Word kind(std::size_t l) const { return locations_[l].kind; }
  std::size_t newest(std::size_t l) const { return locations_[l].history.size() - 1; }

  /// Its value number `at`, which the thread knows of from now on, and when it acquires, what its writer released, too.
  ModelValue load(View& view, std::size_t l, std::size_t at, bool acquire) const;
  /// A new value of `thread`'s, whose view goes with it when it releases. A read-modify-write carries on what the value
  /// before it released. What is wrong with it, else nothing.
  [[nodiscard]] std::string store(View& view, std::size_t thread, std::size_t l, const ModelValue& value, bool release,
                                  bool modifies = false);
  /// Plain words: whether the thread knows the newest value, so that its access is ordered behind that store.
  bool knows_newest(const View& view, std::size_t l) const { return view.at[l] == newest(l); }
  /// The thread's access number `view.loads[thread]` is a load of this word.
  void note_plain_load(const View& view, std::size_t thread, std::size_t l);
  /// A thread that has loaded the word, unknown to the one with this view, which is about to store to it.
  std::optional<std::size_t> unknown_reader(const View& view, std::size_t thread, std::size_t l) const;

  /// Of all that threads can still see which all know at least `oldest`.
  std::uint64_t hash(const View& oldest, const ThreadOrder& order) const;

 private:
  struct Message {
    ModelValue value;
    View view;
  };
  struct Location {
    std::string name;
    ModelValue initial;
    Explorer::Word kind;
    std::size_t writer = kMostThreads;  // the last
    std::vector<Message> history;
    std::array<std::uint8_t, kMostThreads> read{};  // plain: each thread's count at its last load
  };
  std::unordered_map<const void*, std::size_t> index_;
  std::vector<Location> locations_;
};

}  // namespace feedrate::test
