#pragma once
#include <cstddef>
#include <functional>

namespace feedrate {

/// On machines with at most this many cores, waiting threads yield after every poll.
inline constexpr unsigned kFewCores = 4;

/// Waits briefly between two polls of a value that another thread or the GPU will change: spins while an early change
/// is likely, then yields the core. On machines with few cores it yields at once, because the awaited thread may need
/// this core. With one or two cores it sleeps after a while (50 µs at a time), because yielding still takes CPU time
/// from other threads.
class Backoff {
 public:
  void wait();
  void reset() { idle_ = 0; }

 private:
  unsigned idle_ = 0;
};

/// Number of cores that this process may use: the cores to which it is bound or, if that is less, the quota of its
/// control groups, rounded down; at least one. (One more spinning thread would exhaust the quota, and all threads would
/// wait for the next period.)
unsigned available_cores();

/// Calls `body(i)` for each `i` below `n`, on all cores, in no particular order. Rethrows an exception thrown by a
/// call.
void in_parallel(std::size_t n, const std::function<void(std::size_t)>& body);

/// Binds the calling thread to the `index`-th of the available cores (modulo their number).
void pin_to_core(unsigned index);

}  // namespace feedrate
