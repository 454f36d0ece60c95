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

double Histogram::quantile(double quantile) const {
  if (samples_ == 0) return 0;
  const auto wanted = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(samples_) - 1e-9)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen < wanted) continue;
    const double middle = static_cast<double>(lowest(i)) + static_cast<double>(width(i) - 1) / 2;
    return std::clamp(middle, static_cast<double>(min_), static_cast<double>(max_));
  }
  return static_cast<double>(max_);  // in the overflow, where only the largest value is known
}

}  // namespace feedrate
