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

/// Runs small programs of a few simulated threads in every way that the C++ memory model lets them run, but for loads
/// that see the future. The threads are real protocol code over ModelMemory, each on a stack of its own.
///
/// Memory keeps every value that a word ever had, in order. A load may return any of them that is not older than what
/// its thread already knows of (its view), so a store may reach others arbitrarily late and after stores that were
/// issued later, and a load may act earlier than it stands: whatever store buffers, caches and reordered loads could
/// do. A release store hands its thread's view to whoever acquires that value; read-modify-writes act on the newest
/// value. Words declared `plain` are for data that only orders of other words protect: two accesses of one by different
/// threads, one of them a store, with nothing that orders them, are a violation.
///
/// All interleavings and all choices of loads are walked depth-first, each execution from the start; states seen before
/// are not walked again. A state's identity is the values that can still be seen, the views, and where each thread is:
/// what it said of itself at the head of its loop (`mark`) and what its loads returned since then; as a 64-bit hash.
namespace feedrate::test {

/// What a word or a unit of 16 bytes holds.
struct ModelValue {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const ModelValue&, const ModelValue&) = default;
};

struct ModelThread {
  std::string name;
  std::function<void()> body;
  /// Threads with `alike` run the same code on the same words and can be exchanged: of states that differ only in which
  /// of them is where, one is explored.
  bool alike = false;
};

/// One execution's private objects; made anew for each. Bodies must leave nothing on their stacks that needs a
/// destructor: executions are dropped halfway.
class ModelProgram {
 public:
  virtual ~ModelProgram() = default;
  virtual std::vector<ModelThread> threads() = 0;
};

struct Explored {
  std::uint64_t states = 0;
  std::uint64_t executions = 0;
  bool complete = false;    ///< everything was walked, without a violation
  std::string violation;    ///< what went wrong, if something did
  std::string schedule;     ///< and how it came to that, a line a step
  std::uint64_t ended = 0;  ///< executions that ran to their end, the others met a known state
};

class Explorer {
 public:
  Explorer();
  ~Explorer();
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;

  /// Who writes a word. Orders of stores by one thread follow from its code, others' have to be tried.
  enum class Word { one_writer, many_writers, plain };
  /// Every word that threads touch is declared before. One that a second thread writes against its declaration is a
  /// violation. Words by which nothing is ordered are `plain`.
  void declare(const void* address, std::string name, Word kind = Word::one_writer, ModelValue initial = {});
  Explored explore(const std::function<std::unique_ptr<ModelProgram>()>& make, std::uint64_t most_states = 20'000'000);

  // For threads, by ModelMemory.
  ModelValue load(const void* address, bool acquire);
  void store(const void* address, ModelValue value, bool release);
  /// `change` returns whether to store. Acquires and releases as told; a change that is refused is a relaxed load.
  ModelValue modify(const void* address, const std::function<bool(ModelValue&)>& change, bool acquire, bool release);
  ModelValue load_plain(const void* address);
  void store_plain(const void* address, ModelValue value);
  /// All that the thread's code will do depends on `state` and what it loads from here on.
  void mark(std::uint64_t state);
  /// The thread looked in vain: it goes on when it can see something that it did not see since it last paused. Looking
  /// again at the same values must not change its state.
  void pause();
  /// One of `n` ways, all of which are walked.
  unsigned choose(unsigned n);
  [[noreturn]] void fail(std::string what);

  static Explorer& current();  ///< the one that is exploring

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Of values and protocol objects, by their words; addresses, which differ between executions, are left out.
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

/// Stands in for SystemMemory.
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
  // What the users of slots do with them.
  static std::uint64_t load_plain(const void* word) { return Explorer::current().load_plain(word).low; }
  static void store_plain(const void* word, std::uint64_t value) { Explorer::current().store_plain(word, {value, 0}); }
};

}  // namespace feedrate::test
