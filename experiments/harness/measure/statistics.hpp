#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace feedrate {

double mean_of(std::span<const double> values);
/// Requires at least one value.
double median_of(std::vector<double> values);

/// Standard deviation of at least two values.
double deviation_of(std::span<const double> values);

/// The 97.5 % quantile of Student's t.
double student_975(std::size_t freedom);

/// The quantile of the standard normal distribution, for 0 < p < 1.
double normal_quantile(double p);
/// The quantile of Student's t, by the expansion in 1 / freedom of Abramowitz and Stegun (26.7.5). For at least five
/// degrees of freedom and p up to 0.9998 the error is below 1 %.
double student_quantile(double p, double freedom);

/// Half the width of the 95 % confidence interval of a mean, by Student's t. Repetitions are few, and a bootstrap from
/// three values gives intervals that are too narrow. Infinite for fewer than two values.
double half_width_95(std::span<const double> values);

/// Half the width of an interval that covers the mean in 95 % of cases even though its width is checked after each
/// repetition, starting with the tenth. It is Student's 98 % interval. In simulation (repeats_test.cpp) it covers 97 %
/// up to a coefficient of variation of 7 %; the plain 95 % interval, checked from the third repetition, covers 90 % or
/// less. Infinite for fewer than ten values.
double sequential_half_width_95(std::span<const double> values);
inline constexpr std::size_t kLeastSequential = 10;

/// A half width as a share of the mean.
double relative_to_mean(double half_width, std::span<const double> values);

/// Estimate of a figure from repetitions: the median, with a 95 % interval on logarithms (Student's t, scaled by the
/// variance of the median). Reports show the same median, but their intervals also use the other points of the run.
struct Estimate {
  double median = 0;
  /// Interval: median / e^reach to median · e^reach; absent for one repetition or for zeros.
  std::optional<double> reach;

  /// " ± 5 %", or " within 1.5 ×" for 30 % and more; empty without an interval.
  std::string spread_text() const;
};

/// Requires at least one value.
Estimate estimate_of(std::vector<double> values);

/// How the other median compares with the first: "2 × less" or "2 × more"; "unclear" if the intervals overlap, "no
/// interval" if one has none.
std::string comparison(const Estimate&, const Estimate&);

/// Heading of a list of best results. `unclear` marks a result whose interval overlaps with the next one's.
std::string best_heading(bool cpu, std::string_view unclear = "unclear");

/// A straight line through equally spaced values, by least squares.
struct Trend {
  double mean = 0;
  double slope = 0;  ///< per step
  double error = 0;  ///< standard error of the slope, assuming independent deviations
};

/// Fits a line. With fewer than three values the slope is 0.
Trend trend_of(std::span<const double> values);

}  // namespace feedrate
