#pragma once
#include <vector>

#include "experiments/harness/json.hpp"
#include "experiments/harness/measure/axis_table.hpp"
#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {

/// A point that is named as the best of several.
struct Chosen {
  Values values;
  std::size_t of = 0;  ///< number of points that it was chosen from
};

/// Whether a row was measured after its point had been chosen as the best of several. The rows by which it was chosen
/// are too good by chance (Efron, Tweedie's formula and selection bias, 2011), so they do not count as its figures.
inline bool is_afresh(const Json& row) { return row.contains("afresh"); }

/// Values of one figure of a point, one per repetition.
class ChosenValues {
 public:
  void add(double value, bool afresh) { (afresh ? afresh_ : first_).push_back(value); }
  /// The median that decides which point is the best.
  double rank() const { return median_of(first_.empty() ? afresh_ : first_); }
  /// The values that count as the point's figure.
  const std::vector<double>& counted() const { return afresh_.empty() ? first_ : afresh_; }

 private:
  std::vector<double> first_, afresh_;
};

}  // namespace feedrate
