#pragma once
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/support/explorer.hpp"

/// The explorer's memory: every value that a word ever had, in order, and the knowledge that each thread has of them.
namespace feedrate::test {

constexpr std::size_t kMaxLocations = 72;
constexpr std::size_t kMaxThreads = 8;

/// The known number of plain loads of each thread and, by location, the oldest value that may still be read.
struct View {
  std::array<std::uint8_t, kMaxThreads> loads{};
  std::array<std::uint8_t, kMaxLocations> at{};

  void join(const View& other) {
    for (std::size_t i = 0; i < loads.size(); ++i) loads[i] = std::max(loads[i], other.loads[i]);
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = std::max(at[i], other.at[i]);
  }
  /// Keeps only what both views know.
  void meet(const View& other) {
    for (std::size_t i = 0; i < loads.size(); ++i) loads[i] = std::min(loads[i], other.loads[i]);
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = std::min(at[i], other.at[i]);
  }
};

/// The order in which a state lists the threads: a permutation of interchangeable threads.
using ThreadOrder = std::array<std::uint8_t, kMaxThreads>;
using PerThread = std::array<std::uint8_t, kMaxThreads>;
inline PerThread reordered(const PerThread& values, const ThreadOrder& order) {
  PerThread result;
  for (std::size_t t = 0; t < kMaxThreads; ++t) result[t] = values[order[t]];
  return result;
}

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) { return mix64(hash ^ value) + hash; }
inline std::uint64_t mix_locations(std::uint64_t hash, const View& view, std::size_t locations) {
  const auto words = std::bit_cast<std::array<std::uint64_t, kMaxLocations / 8>>(view.at);
  for (std::size_t i = 0; i < (locations + 7) / 8; ++i) hash = mix(hash, words[i]);
  return hash;
}
inline std::uint64_t mix(std::uint64_t hash, const View& view, std::size_t locations, const ThreadOrder& order) {
  return mix_locations(mix(hash, std::bit_cast<std::uint64_t>(reordered(view.loads, order))), view, locations);
}

class ModelWords {
 public:
  /// Maximum number of values of a location. They are numbered from 0, the initial value.
  static constexpr std::size_t kMaxValues = 255;

  void declare(const void* address, std::string name, Explorer::Word kind, ModelValue initial);
  /// Restores the initial values.
  void reset();
  std::optional<std::size_t> find(const void* address) const;
  std::size_t size() const { return locations_.size(); }
  const std::string& name(std::size_t l) const { return locations_[l].name; }
  Explorer::Word kind(std::size_t l) const { return locations_[l].kind; }
  std::size_t newest(std::size_t l) const { return locations_[l].history.size() - 1; }

  /// Returns value number `at` of location `l`. The thread's view then includes this value and, if the load acquires,
  /// the view that the writer released.
  ModelValue load(View& view, std::size_t l, std::size_t at, bool acquire) const;
  /// Appends a value stored by `thread`; a release store also publishes the thread's view. A read-modify-write passes
  /// on the view that the previous value released. Returns a description of the violation, or an empty string.
  [[nodiscard]] std::string store(View& view, std::size_t thread, std::size_t l, const ModelValue& value, bool release,
                                  bool modifies = false);
  /// For plain words: whether the thread knows the newest value, so that its access is ordered after that store.
  bool knows_newest(const View& view, std::size_t l) const { return view.at[l] == newest(l); }
  /// Records that plain load number `view.loads[thread]` of the thread read this word.
  void note_plain_load(const View& view, std::size_t thread, std::size_t l);
  /// Returns a thread that has loaded the word without the knowledge of `thread`, which is about to store to the word.
  std::optional<std::size_t> unknown_reader(const View& view, std::size_t thread, std::size_t l) const;

  /// Hash of all values that threads can still see if every thread knows at least `oldest`.
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
    std::size_t writer = kMaxThreads;  // the last writer
    std::vector<Message> history;
    std::array<std::uint8_t, kMaxThreads> read{};  // plain words: each thread's count at its last load
  };
  std::unordered_map<const void*, std::size_t> index_;
  std::vector<Location> locations_;
};

}  // namespace feedrate::test
