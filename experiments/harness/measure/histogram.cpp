#include "experiments/harness/measure/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace feedrate {

void Histogram::merge(const Histogram& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(kBuckets);
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  samples_ += other.samples_;
  overflow_ += other.overflow_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

namespace {

/// Rank of the wanted sample, from 1.
std::uint64_t rank_of(double quantile, std::uint64_t samples) {
  return std::max<std::uint64_t>(1,
                                 static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(samples) - 1e-9)));
}

}  // namespace

double Histogram::quantile(double quantile) const {
  if (samples_ == 0) return 0;
  const std::uint64_t wanted = rank_of(quantile, samples_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen < wanted) continue;
    const double middle = static_cast<double>(lowest(i)) + static_cast<double>(width(i) - 1) / 2;
    return std::clamp(middle, static_cast<double>(min_), static_cast<double>(max_));
  }
  return static_cast<double>(max_);  // in the overflow, where only the largest value is known
}

double Histogram::interpolated(double quantile) const {
  if (samples_ == 0) return 0;
  const std::uint64_t wanted = rank_of(quantile, samples_);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (before + counts_[i] >= wanted) {
      const double share = (static_cast<double>(wanted - before) - 0.5) / static_cast<double>(counts_[i]);
      const double value = static_cast<double>(lowest(i)) - 0.5 + share * static_cast<double>(width(i));
      return std::clamp(value, static_cast<double>(min_), static_cast<double>(max_));
    }
    before += counts_[i];
  }
  return static_cast<double>(max_);
}

}  // namespace feedrate
