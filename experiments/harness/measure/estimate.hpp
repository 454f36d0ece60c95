#pragma once
#include <optional>
#include <string>
#include <vector>

namespace feedrate {

/// What repetitions say of a figure: their median, with a 95 % interval on logarithms (Student's t, and the median's
/// own variance). The reports show the same median; their interval also learns from the other points of the run.
struct Estimate {
  double median = 0;
  std::optional<double> reach;  ///< from median / e^reach to median · e^reach; none of a single repetition, or of zeros

  /// " ± 5 %"; from 30 % on " within 1.5 x"; empty without an interval.
  std::string spread_text() const;
};

/// Of at least one value.
Estimate estimate_of(std::vector<double> values);

/// How many times the one is the other: "2 x". "unclear" where the intervals overlap, "once" where one has none.
std::string comparison(const Estimate&, const Estimate&);

/// The line above them.
std::string best_heading(bool cpu);

}  // namespace feedrate
