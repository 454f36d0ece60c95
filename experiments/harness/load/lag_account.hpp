#pragma once
#include <chrono>
#include <cstdint>
#include <thread>

#include "common/threads/threads.hpp"

namespace feedrate {

/// Attributes a load generator's delay, counted since the generator last had nothing due. One part is the time for
/// which others kept it waiting, for room or in submit calls; the rest is the generator's own. A late request is late
/// by both parts.
class LagAccount {
 public:
  explicit LagAccount(std::uint64_t now) : since_(now) {}
  void caught_up(std::uint64_t now) {
    since_ = now;
    theirs_ = waiting_ = 0;
  }
  /// Starts a period, ended by `go_on`, in which others keep the generator waiting.
  void wait(std::uint64_t now) {
    if (waiting_ == 0) waiting_ = now;
  }
  /// Ends the period and returns its length.
  std::uint64_t go_on(std::uint64_t now) {
    const std::uint64_t waited = waiting_ == 0 ? 0 : now - waiting_;
    theirs_ += waited;
    waiting_ = 0;
    return waited;
  }
  /// The generator's own share of the delay.
  double own_share(std::uint64_t now) const {
    return now == since_ ? 1 : 1 - static_cast<double>(theirs_) / static_cast<double>(now - since_);
  }

 private:
  std::uint64_t since_, theirs_ = 0, waiting_ = 0;
};

/// Waits for part of the time until a request is due. Yields the core while that time is long, and returns at once when
/// it is short, because a thread that yields its core gets it back late.
inline void wait_for_due(std::uint64_t gap_ns, Backoff& backoff) {
  constexpr std::uint64_t kLong = 1'000'000, kNear = 5'000;
  if (gap_ns > kLong) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  } else if (gap_ns > kNear) {
    backoff.wait();
  }
}

}  // namespace feedrate
