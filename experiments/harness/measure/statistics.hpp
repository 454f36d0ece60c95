#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace feedrate {

/// Half the width of the 95 % confidence interval of a mean, by Student's t. Repetitions are few, and a bootstrap from
/// three values gives intervals that are too narrow. Infinite for fewer than two values.
inline double half_width_95(std::span<const double> values) {
  // The 97.5 % quantiles for 1 to 30 degrees of freedom (any table of Student's t); for more, the last is close enough.
  constexpr double kT[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                           2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                           2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  const std::size_t n = values.size();
  if (n < 2) return std::numeric_limits<double>::infinity();
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(n);
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double t = kT[std::min(n - 2, std::size(kT) - 1)];
  return t * std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n));
}

/// Half the width of an interval that covers the mean in 95 % of cases even though its width is checked after each
/// repetition, starting with the tenth. It is Student's 98 % interval. In simulation (repeats_test.cpp) it covers 97 %
/// up to a coefficient of variation of 7 %; the plain 95 % interval, checked from the third repetition, covers 90 % and
/// less. Infinite for fewer than ten values.
inline constexpr std::size_t kLeastSequential = 10;
inline double sequential_half_width_95(std::span<const double> values) {
  if (values.size() < kLeastSequential) return std::numeric_limits<double>::infinity();
  const auto freedom = static_cast<double>(values.size() - 1);
  // The 99 % quantile of Student's t by its expansion about the normal quantile (Abramowitz and Stegun 26.7.5), which
  // is accurate to 0.001 for at least nine degrees of freedom.
  constexpr double z = 2.326348, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  const double t = z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
                   (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return t * std::sqrt(squares / freedom / static_cast<double>(values.size()));
}

/// A half width as a share of the mean.
inline double relative_to_mean(double half_width, std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum == 0 ? std::numeric_limits<double>::infinity()
                  : half_width / std::abs(sum / static_cast<double>(values.size()));
}

}  // namespace feedrate
