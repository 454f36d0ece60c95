#pragma once
#include <cstdint>

#include "common/clock.hpp"

namespace feedrate {

/// How much of a polling loop's time goes into what it finds. A sample of the rounds that found something is timed, as
/// a look at the clock costs as much as a few messages.
class BusyShare {
 public:
  /// Something was found …
  void begin() {
    if (rounds_++ % kEvery == 0) {
      begin_ = now_ns();
    } else if (end_ != 0) {
      busy_ += end_ - begin_;
      all_ += now_ns() - begin_;
      end_ = 0;
    }
  }
  /// … and is done with.
  void end() {
    if (rounds_ % kEvery == 1) end_ = now_ns();
  }
  /// 0 to 1; 0 where less than two rounds found something.
  double share() const { return all_ == 0 ? 0 : static_cast<double>(busy_) / static_cast<double>(all_); }

 private:
  static constexpr std::uint64_t kEvery = 32;
  std::uint64_t rounds_ = 0, begin_ = 0, end_ = 0, busy_ = 0, all_ = 0;
};

}  // namespace feedrate
