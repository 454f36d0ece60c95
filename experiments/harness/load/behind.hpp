#pragma once
#include <cstdint>

#include "common/threads/threads.hpp"

namespace feedrate {

/// Since a load generator last had nothing due: how much of the time others kept it waiting, for room or in submitting.
/// The rest is its own, and what is behind is behind by both.
class Behind {
 public:
  explicit Behind(std::uint64_t now) : since_(now) {}
  void caught_up(std::uint64_t now) {
    since_ = now;
    theirs_ = waiting_ = 0;
  }
  /// From now on until `go_on` others keep the generator waiting.
  void wait(std::uint64_t now) {
    if (waiting_ == 0) waiting_ = now;
  }
  /// Returns how long that was.
  std::uint64_t go_on(std::uint64_t now) {
    const std::uint64_t waited = waiting_ == 0 ? 0 : now - waiting_;
    theirs_ += waited;
    waiting_ = 0;
    return waited;
  }
  /// The generator's own share of being late.
  double own_share(std::uint64_t now) const {
    return now == since_ ? 1 : 1 - static_cast<double>(theirs_) / static_cast<double>(now - since_);
  }

 private:
  std::uint64_t since_, theirs_ = 0, waiting_ = 0;
};

/// Waits some of the time until a request is due: gives the core away while that is long, and polls without a pause
/// when it is near, since a thread that gives the core away gets it back late.
void wait_for_due(std::uint64_t gap_ns, Backoff& backoff);

}  // namespace feedrate
