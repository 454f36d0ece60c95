#pragma once
#include <cmath>
#include <cstddef>
#include <span>

namespace feedrate {

/// A straight line through equally spaced values, by least squares.
struct Trend {
  double mean = 0;
  double slope = 0;  ///< per step
  double error = 0;  ///< standard error of the slope, assuming independent deviations
};

/// Fits a line. With fewer than three values the slope is 0.
inline Trend trend_of(std::span<const double> values) {
  Trend trend;
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return trend;
  for (const double value : values) trend.mean += value / n;
  if (values.size() < 3) return trend;
  const double middle = (n - 1) / 2, spread = n * (n * n - 1) / 12;  // sum of squares of 0 … n-1 about the mean
  for (std::size_t i = 0; i < values.size(); ++i) {
    trend.slope += (static_cast<double>(i) - middle) * (values[i] - trend.mean) / spread;
  }
  double rest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double off = values[i] - trend.mean - trend.slope * (static_cast<double>(i) - middle);
    rest += off * off;
  }
  trend.error = std::sqrt(rest / (n - 2) / spread);
  return trend;
}

}  // namespace feedrate
