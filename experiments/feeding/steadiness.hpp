#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {

/// Detects when a rate no longer has a trend: over the last half of the time slices (at least eight), it neither rose
/// nor fell by 5 % of its mean, with confidence. A rate that varies more takes longer to qualify, and may be neither
/// steady nor changing: then its slices are too noisy to tell. The slices are judged as the means of eight blocks,
/// because neighbouring slices are alike: results come in batches, and a window takes several slices.
class Steadiness {
 public:
  static constexpr std::uint64_t kSliceNs = 5'000'000;
  static constexpr std::size_t kBlocks = 8;
  static constexpr double kDrift = 0.05;

  /// Adds a sample of the time and the number of results so far; call it often. In an open load the rate is a share of
  /// the messages due so far (`due`), because arrivals vary; otherwise `due` is 0. Returns true once the rate is
  /// steady, and on every later call.
  bool add(std::uint64_t now_ns, std::uint64_t received, std::uint64_t due = 0) {
    if (steady_) return true;
    const Sample sample{now_ns, received, due};
    if (last_.now_ns == 0) last_ = sample;
    if (now_ns - last_.now_ns < kSliceNs || (due != 0 && due == last_.due)) return false;
    const auto expected = due != 0 ? due - last_.due : now_ns - last_.now_ns;
    rates_.push_back(static_cast<double>(received - last_.received) / static_cast<double>(expected));
    last_ = sample;
    if (rates_.size() < kBlocks) return false;
    trend_ = trend_of(blocks());
    const double drift = (std::abs(trend_.slope) + quantile() * trend_.error) * kBlocks;
    steady_ = trend_.mean > 0 && drift < kDrift * trend_.mean;
    return steady_;
  }
  /// Whether the rate certainly has a trend of 5 % or more over the judged slices, or has no eight slices yet.
  bool changing() const {
    if (steady_) return false;
    const double slope = std::abs(trend_.slope);
    return trend_.mean <= 0 || (slope > quantile() * trend_.error && slope * kBlocks >= kDrift * trend_.mean);
  }

 private:
  struct Sample {
    std::uint64_t now_ns = 0, received = 0, due = 0;
  };
  static double quantile() { return student_975(kBlocks - 2); }
  std::array<double, kBlocks> blocks() const {
    const std::size_t length = std::max(kBlocks, rates_.size() / 2) / kBlocks;
    const auto judged = std::span(rates_).last(length * kBlocks);
    std::array<double, kBlocks> means{};
    for (std::size_t i = 0; i < kBlocks; ++i) means[i] = mean_of(judged.subspan(i * length, length));
    return means;
  }

  std::vector<double> rates_;
  Trend trend_;  // of the judged blocks
  Sample last_;
  bool steady_ = false;
};

}  // namespace feedrate
