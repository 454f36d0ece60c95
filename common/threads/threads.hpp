#pragma once
#include <cstddef>
#include <functional>

namespace feedrate {

/// On so many cores or fewer threads that wait give theirs away between two looks.
inline constexpr unsigned kFewCores = 4;

/// Waits a little between two looks at something another thread (or the GPU) will change: spins while that is likely
/// soon, then gives the core away. On machines with few cores it yields at once, because the awaited thread may need
/// this very core; with two or one it sleeps after a while (50 µs at a time), because yielding takes a share from
/// others.
class Backoff {
 public:
  void wait();
  void reset() { idle_ = 0; }

 private:
  unsigned idle_ = 0;
};

/// Cores this process may use: those that it is bound to, or as many whole ones as its control groups' quota allows if
/// that is less; at least one. (A thread more that spins would have all threads wait for the next period.)
unsigned available_cores();

/// Calls `body(i)` for each `i` below `n`, on all cores, in no order. Throws what a call threw.
void in_parallel(std::size_t n, const std::function<void(std::size_t)>& body);

/// Binds the calling thread to the `index`-th core it may use (modulo their number).
void pin_to_core(unsigned index);

}  // namespace feedrate
