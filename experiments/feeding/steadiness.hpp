#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "experiments/harness/measure/trend.hpp"

namespace feedrate {

/// Whether a rate has no trend any more: over the last half of the time slices seen so far, and at least eight, it
/// surely neither rose nor fell by 5 % of its mean. A rate that varies a lot takes longer to show that.
class Steadiness {
 public:
  static constexpr std::uint64_t kSliceNs = 5'000'000;
  static constexpr std::size_t kLeastSlices = 8;
  static constexpr double kDrift = 0.05;

  /// Called often, with the clock and what has come back so far. In an open load the rate is a share of what was due
  /// (`due` so far), for arrivals vary by themselves; else `due` is 0. True from the first time on at which it is
  /// steady.
  bool add(std::uint64_t now_ns, std::uint64_t received, std::uint64_t due = 0) {
    if (steady_) return true;
    const Look look{now_ns, received, due};
    if (last_.now_ns == 0) last_ = look;
    if (now_ns - last_.now_ns < kSliceNs || (due != 0 && due == last_.due)) return false;
    const auto expected = due != 0 ? due - last_.due : now_ns - last_.now_ns;
    rates_.push_back(static_cast<double>(received - last_.received) / static_cast<double>(expected));
    last_ = look;
    const std::size_t judged = std::max(kLeastSlices, rates_.size() / 2);
    if (rates_.size() < judged) return false;
    const Trend trend = trend_of(std::span(rates_).last(judged));
    const double drift = (std::abs(trend.slope) + 2 * trend.error) * static_cast<double>(judged);
    steady_ = trend.mean > 0 && drift < kDrift * trend.mean;
    return steady_;
  }

 private:
  struct Look {
    std::uint64_t now_ns = 0, received = 0, due = 0;
  };
  std::vector<double> rates_;
  Look last_;
  bool steady_ = false;
};

}  // namespace feedrate
