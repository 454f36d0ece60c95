#include "experiments/harness/measure/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {
namespace {

/// Variance of the median of n normal values, relative to the variance of their mean (order statistics; π / 2 for large
/// n).
double of_median(std::size_t n) {
  constexpr double kOfMedian[] = {1, 1, 1, 1.346, 1.192, 1.434, 1.288};
  return n < std::size(kOfMedian) ? kOfMedian[n] : std::numbers::pi / 2;
}

}  // namespace

std::string Estimate::spread_text() const {
  if (!reach) return "";
  const double factor = std::exp(*reach);
  return factor < 1.3 ? fmt::format(" ± {:.0f} %", 100 * (factor - 1)) : fmt::format(" within {:.2g} x", factor);
}

Estimate estimate_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  Estimate estimate{(values[(n - 1) / 2] + values[n / 2]) / 2, {}};
  if (n < 2 || values.front() <= 0) return estimate;
  for (double& value : values) value = std::log(value);
  estimate.reach = half_width_95(values) * std::sqrt(of_median(n));
  return estimate;
}

std::string comparison(const Estimate& one, const Estimate& other) {
  if (!one.reach || !other.reach) return "once";
  const double apart = std::abs(std::log(one.median / other.median));
  if (apart <= *one.reach + *other.reach) return "unclear";
  return std::exp(apart) < 99.5 ? fmt::format("{:.2g} x", std::exp(apart)) : fmt::format("{:.0f} x", std::exp(apart));
}

std::string best_heading(bool cpu) {
  return std::string(cpu ? "Best on this CPU; NOT GPU results" : "Best measured") +
         " (median, 95 % interval; unclear: overlap):\n";
}

}  // namespace feedrate
