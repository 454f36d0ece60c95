#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/hash.hpp"
#include "common/ring/memory.hpp"

/// Runs small programs of a few simulated threads in every way that the C++ memory model allows, except for loads that
/// see the future. The threads run the real protocol code over ModelMemory, each on its own stack.
///
/// Memory keeps every value that a word ever had, in order. A load may return any value that is not older than the
/// values that its thread already knows (its view). A store may therefore reach other threads arbitrarily late and
/// after stores that were issued later, and a load may take effect earlier than its place in the code. This covers the
/// effects of store buffers, caches and reordered loads. A release store passes its thread's view to every thread that
/// acquires the stored value; read-modify-writes act on the newest value. Words declared `plain` hold data that is
/// protected only by the order of other words: two unordered accesses to such a word by different threads, at least one
/// of them a store, are a violation.
///
/// All interleavings and all choices of loads are explored depth-first, each execution from the start; a state that was
/// seen before is not explored again. A state is identified by a 64-bit hash of the values that can still be seen, the
/// views, and the position of each thread: the state that it reported at the head of its loop (`mark`) and the values
/// that its loads have returned since then.
namespace feedrate::test {

/// The value of a word or of a unit of 16 bytes.
struct ModelValue {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const ModelValue&, const ModelValue&) = default;
};

struct ModelThread {
  std::string name;
  std::function<void()> body;
  /// Threads with `alike` run the same code on the same words and are interchangeable: only one of the states that
  /// differ by swapping such threads is explored.
  bool alike = false;
};

/// The private objects of one execution; each execution creates new ones. Thread bodies must not have objects with
/// destructors on their stacks, because executions are abandoned halfway.
class ModelProgram {
 public:
  virtual ~ModelProgram() = default;
  virtual std::vector<ModelThread> threads() = 0;
};

struct Explored {
  std::uint64_t states = 0;
  std::uint64_t executions = 0;
  bool complete = false;    ///< everything was explored, without a violation
  std::string violation;    ///< description of the violation, if there was one
  std::string schedule;     ///< the steps that led to the violation, one per line
  std::uint64_t ended = 0;  ///< executions that ran to their end; the others reached a known state
};

class Explorer {
 public:
  Explorer();
  ~Explorer();
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  /// The threads that may write a word. The order of stores by one thread follows from its code; orders of stores by
  /// several threads must be explored.
  enum class Word { one_writer, many_writers, plain };
  /// Declares a word; all words that threads access must be declared first. It is a violation if a second thread writes
  /// to a `one_writer` word. Words that order nothing are `plain`.
  void declare(const void* address, std::string name, Word kind = Word::one_writer, ModelValue initial = {});
  Explored explore(const std::function<std::unique_ptr<ModelProgram>()>& make, std::uint64_t max_states = 20'000'000);

  // Functions for the simulated threads, called through ModelMemory.
  ModelValue load(const void* address, bool acquire);
  void store(const void* address, ModelValue value, bool release);
  /// `change` returns whether to store. Acquires and releases as requested; if nothing is stored, this is a relaxed
  /// load.
  ModelValue modify(const void* address, const std::function<bool(ModelValue&)>& change, bool acquire, bool release);
  ModelValue load_plain(const void* address);
  void store_plain(const void* address, ModelValue value);
  /// Declares that everything the thread's code will do depends only on `state` and on the values it loads from now on.
  void mark(std::uint64_t state);
  /// Pauses a thread that found nothing to do. It continues when it can see a value that it has not seen since its last
  /// pause. Reading the same values again must not change the thread's state.
  void pause();
  /// Returns one of `n` choices; all of them are explored.
  unsigned choose(unsigned n);
  [[noreturn]] void fail(std::string what);

  static Explorer& current();  ///< the explorer that is currently exploring

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Hash of values and protocol objects, word by word; leaves out addresses, which differ between executions.
template <class... Parts>
std::uint64_t state_of(const Parts&... parts) {
  std::uint64_t hash = 0;
  const auto add = [&](const auto& part) {
    for (std::size_t at = 0; at < sizeof part; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, reinterpret_cast<const char*>(&part) + at, std::min<std::size_t>(8, sizeof part - at));
      if (word >> 40 == 0 || word >> 48 != 0) hash = mix64(hash ^ word) + hash + at;
    }
  };
  (add(parts), ...);
  return hash;
}

/// Replaces SystemMemory in explored programs.
struct ModelMemory {
  static std::uint64_t load_relaxed(std::uint64_t& word) { return Explorer::current().load(&word, false).low; }
  static std::uint64_t load_acquire(std::uint64_t& word) { return Explorer::current().load(&word, true).low; }
  static void store_relaxed(std::uint64_t& word, std::uint64_t value) {
    Explorer::current().store(&word, {value, 0}, false);
  }
  static void store_release(std::uint64_t& word, std::uint64_t value) {
    Explorer::current().store(&word, {value, 0}, true);
  }
  static void or_release(std::uint64_t& word, std::uint64_t bits) {
    Explorer::current().modify(
        &word, [&](ModelValue& value) { return value.low |= bits, true; }, false, true);
  }
  static std::uint32_t load_acquire(std::uint32_t& half) {
    return static_cast<std::uint32_t>(Explorer::current().load(&half, true).low);
  }
  static void store_release(std::uint32_t& half, std::uint32_t value) {
    Explorer::current().store(&half, {value, 0}, true);
  }
  static std::uint64_t lane_peek(std::uint64_t& word) { return Explorer::current().load(&word, false).low; }
  static bool lane_exchange(std::uint64_t& word, std::uint64_t expected, std::uint64_t value) {
    const auto change = [&](ModelValue& now) {
      if (now.low != expected) return false;
      now.low = value;
      return true;
    };
    return Explorer::current().modify(&word, change, false, false).low == expected;
  }
  static std::uint64_t lane_decrement(std::uint64_t& word) {
    const auto change = [](ModelValue& now) { return --now.low, true; };
    return Explorer::current().modify(&word, change, true, true).low - 1;
  }
  static void pause() { Explorer::current().pause(); }
  static Unit load_unit(const Unit& at);
  static std::uint32_t load_unit(const Unit& at, std::byte* to) {
    const Unit unit = load_unit(at);
    std::memcpy(to, &unit, sizeof unit);
    return unit.flag;
  }
  static void store_unit(Unit& at, const Unit& unit);
  static void store_unit(Unit& at, const std::byte* data, std::uint32_t flag) {
    Unit unit{{}, flag};
    std::memcpy(unit.data, data, sizeof unit.data);
    store_unit(at, unit);
  }
  // Accesses of users to the contents of slots.
  static std::uint64_t load_plain(const void* word) { return Explorer::current().load_plain(word).low; }
  static void store_plain(const void* word, std::uint64_t value) { Explorer::current().store_plain(word, {value, 0}); }
};

}  // namespace feedrate::test
