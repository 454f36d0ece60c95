#include "experiments/harness/measure/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace feedrate {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Standard error of the mean of at least two values.
double standard_error(std::span<const double> values) {
  return deviation_of(values) / std::sqrt(static_cast<double>(values.size()));
}

/// Variance of the median of n normal values, relative to the variance of their mean (order statistics; π / 2 for large
/// n).
double of_median(std::size_t n) {
  constexpr double kOfMedian[] = {1, 1, 1, 1.346, 1.192, 1.434, 1.288};
  return n < std::size(kOfMedian) ? kOfMedian[n] : std::numbers::pi / 2;
}

}  // namespace

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

double deviation_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double student_975(std::size_t freedom) {
  // The quantiles for 1 to 30 degrees of freedom (any table of Student's t); for more, the last value is close
  // enough.
  constexpr double kT[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                           2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                           2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return freedom == 0 ? kInfinite : kT[std::min(freedom, std::size(kT)) - 1];
}

double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 64; ++i) {  // bisection, to the last digit
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < p ? low : high) = middle;
  }
  return low;
}

double student_quantile(double p, double freedom) {
  const double x = normal_quantile(p), x2 = x * x;
  const double terms[] = {x * (x2 + 1) / 4, x * ((5 * x2 + 16) * x2 + 3) / 96,
                          x * (((3 * x2 + 19) * x2 + 17) * x2 - 15) / 384,
                          x * ((((79 * x2 + 776) * x2 + 1482) * x2 - 1920) * x2 - 945) / 92160};
  double sum = x, power = 1;
  for (const double term : terms) sum += term / (power *= freedom);
  return sum;
}

double half_width_95(std::span<const double> values) {
  return values.size() < 2 ? kInfinite : student_975(values.size() - 1) * standard_error(values);
}

double sequential_half_width_95(std::span<const double> values) {
  if (values.size() < kLeastSequential) return kInfinite;
  const auto freedom = static_cast<double>(values.size() - 1);
  // The 99 % quantile of Student's t by its expansion about the normal quantile (Abramowitz and Stegun 26.7.5), which
  // is accurate to 0.001 for at least nine degrees of freedom.
  constexpr double z = 2.326348, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  const double t = z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
                   (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
  return t * standard_error(values);
}

double relative_to_mean(double half_width, std::span<const double> values) {
  const double mean = mean_of(values);
  return mean == 0 || values.empty() ? kInfinite : half_width / std::abs(mean);
}

namespace {

/// Two significant digits, never in scientific notation.
std::string factor_text(double factor) {
  return factor < 99.5 ? fmt::format("{:.2g}", factor) : fmt::format("{:.0f}", factor);
}

}  // namespace

std::string Estimate::spread_text() const {
  if (!reach) return "";
  const double factor = std::exp(*reach);
  return factor < 1.3 ? fmt::format(" ± {:.0f} %", 100 * (factor - 1))
                      : fmt::format(" within {} ×", factor_text(factor));
}

Estimate estimate_of(std::vector<double> values) {
  Estimate estimate{median_of(values), {}};
  if (values.size() < 2 || *std::min_element(values.begin(), values.end()) <= 0) return estimate;
  for (double& value : values) value = std::log(value);
  estimate.reach = half_width_95(values) * std::sqrt(of_median(values.size()));
  return estimate;
}

std::string comparison(const Estimate& one, const Estimate& other) {
  if (!one.reach || !other.reach) return "no interval";
  const double apart = std::abs(std::log(one.median / other.median));
  if (apart <= *one.reach + *other.reach) return "unclear";
  return factor_text(std::exp(apart)) + (other.median < one.median ? " × less" : " × more");
}

std::string best_heading(bool cpu, std::string_view unclear) {
  return fmt::format("{} (median, 95 % interval; {}: overlap):\n",
                     cpu ? "Best on this CPU; NOT GPU results" : "Best measured", unclear);
}

Trend trend_of(std::span<const double> values) {
  Trend trend;
  if (values.empty()) return trend;
  trend.mean = mean_of(values);
  if (values.size() < 3) return trend;
  const auto n = static_cast<double>(values.size());
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
