#pragma once
#include <cstdint>

#include "common/clock.hpp"

namespace feedrate {

/// How much of a polling loop's time goes into what it finds, the polls that found it included. A sample of those is
/// timed, as a look at the clock costs as much as a few messages.
class BusyShare {
 public:
  /// Before each poll …
  void look() {
    if (end_ != 0 || rounds_ % kEvery == 0) look_ = now_ns();
  }
  /// … which found something …
  void found() {
    if (end_ != 0) {
      busy_ += end_ - begin_;
      all_ += look_ - begin_;
      end_ = 0;
    }
    if (rounds_++ % kEvery == 0) begin_ = look_;
  }
  /// … that is now done with.
  void done() {
    if (rounds_ % kEvery == 1) end_ = now_ns();
  }
  void add(const BusyShare& other) {
    busy_ += other.busy_;
    all_ += other.all_;
  }
  /// 0 to 1; 0 where less than two polls found something.
  double share() const { return all_ == 0 ? 0 : static_cast<double>(busy_) / static_cast<double>(all_); }

 private:
  static constexpr std::uint64_t kEvery = 31;  // odd: lanes are polled by turns, and there are 2^k of them
  std::uint64_t rounds_ = 0, look_ = 0, begin_ = 0, end_ = 0, busy_ = 0, all_ = 0;
};

}  // namespace feedrate
