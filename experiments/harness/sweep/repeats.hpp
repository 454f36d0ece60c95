#pragma once
#include <map>
#include <string>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/settings.hpp"

namespace feedrate {

/// Decides when one point has enough repetitions: a fixed number or, with `--until-precise`, as many (ten at least) as
/// bring the 95 % intervals of the experiment's rate and of one percentile of its time within their bounds, or reach a
/// limit. A disturbed repetition counts for neither and is repeated. A point gets at most as many of these repeats as
/// it has repetitions.
class Repeats {
 public:
  Repeats(const RunSettings& settings, const ExperimentEntry& experiment)
      : settings_(settings), rate_(experiment.rate), time_(experiment.time) {}
  /// Takes in a repetition's row, in any order. Where it was the last that is needed, returns what ended it, for the
  /// row: { "reason": "repetitions" | "precise" | "most repetitions" | "time limit" | "disturbed" | "not ok", the
  /// intervals' relative half widths (`half_widths`), by how much the repetitions differ (`spread`) and where that is
  /// too much to rely on (`unstable`), each by figure }.
  Json add(const Json& row);
  bool enough() const { return !stop_.empty(); }

 private:
  std::string why_enough() const;
  bool precise() const;
  double half_width(const std::vector<double>& values) const;  ///< of the 95 % interval, as a share of the mean
  std::string percentile() const { return time_ + "." + settings_.precision.percentile; }

  RunSettings settings_;
  std::string rate_, time_;
  std::map<std::string, std::vector<double>> values_;  // of ok rows, by figure
  unsigned undisturbed_ = 0, disturbed_ = 0;
  double seconds_ = 0;
  std::string stop_;
};

/// The largest over the smallest; 1 where there is at most one.
double spread_of(const std::vector<double>& values);

/// Whether a row says that something else on the machine spoilt it.
bool is_disturbed(const Json& row);

}  // namespace feedrate
