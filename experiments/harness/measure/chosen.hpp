#pragma once
#include <algorithm>
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

/// Values of one figure of a point, one per repetition: those by which the point is chosen, and those measured afresh.
/// Disturbed values count only while there are no others: leaving the point out would let others win.
class ChosenValues {
 public:
  void add(double value, bool afresh, bool disturbed) {
    (afresh ? afresh_ : first_).add(value, disturbed);
    all_.add(value, disturbed);
  }
  /// The median that decides which point is the best.
  double rank() const { return median_of((first_.values.empty() ? afresh_ : first_).values); }
  /// The values that count as the point's figure: those measured afresh, or all if these were interrupted early.
  const std::vector<double>& counted() const { return counting().values; }
  /// Whether these were all disturbed.
  bool disturbed() const { return counting().disturbed; }

 private:
  struct Kind {
    void add(double value, bool is_disturbed) {
      if (is_disturbed && !disturbed && !values.empty()) return;
      if (!is_disturbed && disturbed) values.clear();
      disturbed = is_disturbed;
      values.push_back(value);
    }
    std::vector<double> values;
    bool disturbed = false;
  };
  static constexpr std::size_t kLeastAfresh = 2;  // a single value has no interval
  const Kind& counting() const {
    return afresh_.values.size() >= std::min(kLeastAfresh, first_.values.size()) ? afresh_ : all_;
  }

  Kind first_, afresh_, all_;
};

}  // namespace feedrate
