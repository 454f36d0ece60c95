#pragma once
#include <optional>
#include <string>
#include <vector>

namespace feedrate {

/// Estimate of a figure from repetitions: the median, with a 95 % interval on logarithms (Student's t, scaled by the
/// variance of the median). Reports show the same median, but their intervals also use the other points of the run.
struct Estimate {
  double median = 0;
  std::optional<double>
      reach;  ///< interval: median / e^reach to median · e^reach; absent for one repetition or for zeros

  /// " ± 5 %", or " within 1.5 x" for 30 % and more; empty without an interval.
  std::string spread_text() const;
};

/// Requires at least one value.
Estimate estimate_of(std::vector<double> values);

/// Ratio of the larger median to the smaller one: "2 x"; "unclear" if the intervals overlap, "once" if one has no
/// interval.
std::string comparison(const Estimate&, const Estimate&);

/// Heading of a list of best results.
std::string best_heading(bool cpu);

}  // namespace feedrate
