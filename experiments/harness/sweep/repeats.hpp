#pragma once
#include <map>
#include <string>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/settings.hpp"

namespace feedrate {

/// Decides when a point has enough repetitions: after a fixed number or, with `--until-precise`, after at least ten,
/// when the 95 % intervals of the experiment's rate and of one percentile of its time are within their bounds or a
/// limit is reached. A disturbed repetition does not count and is repeated; a point gets at most as many extra
/// repetitions as regular ones.
class Repeats {
 public:
  Repeats(const RunSettings& settings, const ExperimentEntry& experiment)
      : settings_(settings), rate_(experiment.rate), time_(experiment.time) {}
  /// Adds a repetition's row. Rows may arrive in any order. If no further repetition is needed, returns the row's
  /// `stop`: { "reason": "repetitions" | "precise" | "most repetitions" | "time limit" | "disturbed" | "not ok", and by
  /// figure the relative half widths of the intervals (`half_widths`), the ratio of the largest to the smallest value
  /// (`spread`), and the figures whose spread is too large to rely on (`unstable`) }.
  Json add(const Json& row);
  bool enough() const { return !stop_.empty(); }

 private:
  std::string why_enough() const;
  bool precise() const;
  double half_width(
      const std::vector<double>& values) const;  ///< half width of the 95 % interval, as a share of the mean
  std::string percentile() const { return time_ + "." + settings_.precision.percentile; }

  RunSettings settings_;
  std::string rate_, time_;
  std::map<std::string, std::vector<double>> values_;  // values of ok rows, by figure
  unsigned undisturbed_ = 0, disturbed_ = 0;
  double seconds_ = 0;
  std::string stop_;
};

/// Ratio of the largest to the smallest value; 1 if there is at most one value.
double spread_of(const std::vector<double>& values);

/// Whether the row is marked as disturbed by other activity on the machine.
bool is_disturbed(const Json& row);

}  // namespace feedrate
