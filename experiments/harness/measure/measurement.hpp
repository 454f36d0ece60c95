#pragma once
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/limits/expression.hpp"
#include "experiments/harness/json.hpp"
#include "experiments/harness/machine/machine_state.hpp"
#include "experiments/harness/measure/histogram.hpp"

namespace feedrate {

enum class Better { higher, lower };

/// Something that an experiment measures: a number, or a distribution of times in ns.
struct Figure {
  std::string name;  ///< key in rows
  std::string unit;  ///< "ns", or a unit per second: "msg/s", "B/s"
  Better better = Better::higher;
  bool distribution = false;
  bool headline = false;  ///< reports and comparisons use this figure
  std::string description;
};
/// Repetitions are unstable if their largest value is at least this many times the smallest: kUnstable for a rate or a
/// median, kUnstableTail for a 99th percentile.
inline constexpr double kUnstable = 1.5, kUnstableTail = 3;

enum class Status { ok, invalid, unsustainable, failed, skipped };

/// Machine-readable reason why a row is not ok; the row's `reason` is for human readers.
enum class Cause {
  none,
  disturbed,          ///< other activity on the machine disturbed the cell
  generator_bound,    ///< near the limit of the load generator alone
  generator_unknown,  ///< the limit of the load generator alone could not be measured
  generator,          ///< the load generator was late, or fell behind
  backlog,            ///< the queue did not keep up with an open load
  wrong_results,      ///< lost, duplicated or corrupted results
  no_results,         ///< no result arrived within the timed phase
  interrupted,        ///< the user interrupted the cell
  hung,               ///< the cell could not be stopped
  impossible,         ///< the point cannot be measured
  error,              ///< anything else that failed
};

/// Warning about a row that still counts.
enum class Flag {
  late_generator,  ///< the load generator's own lag is a notable part of the latencies of an open load
  unsteady,        ///< the warm-up reached its time limit while the rate certainly still had a trend
  above_limit,     ///< a figure is more than 5 % better than its bound, so the limit or the figure is wrong
};
const char* text_of(Status);
const char* text_of(Cause);
const char* text_of(Flag);

/// A figure's bound, and the ratio of the figure to the bound.
struct BoundRatio {
  Expression expression;
  double value = 0;  ///< value of the bound, in the figure's unit
  double ratio = 0;  ///< measured / value; uses the p50 of a distribution
};

/// Result of one repetition of one point.
struct Measurement {
  Status status = Status::ok;
  Cause cause = Cause::none;
  std::string reason;
  std::map<std::string, double> numbers;  ///< keyed by figure
  std::map<std::string, std::pair<Histogram, unsigned>>
      histograms;  ///< by figure; with n if every n-th message is sampled
  std::vector<std::pair<std::string, Expression>>
      bounds_of_figures;                      ///< bounds of figures; the tightest bound of each figure counts
  std::map<std::string, BoundRatio> bounds;   ///< the tightest bound, by figure; from set_bounds()
  std::map<std::string, std::string> chosen;  ///< values that a member chose because the point left them open; by axis
  std::set<Flag> flags;
  unsigned host_threads = 0;            ///< number of spinning threads
  unsigned sms = 0;                     ///< number of SMs held permanently
  Json cost = Json::object();           ///< other costs of the result
  std::optional<MachineState> machine;  ///< state of the machine during the timed phase
  Json gpu_use;                         ///< only for a traced cell
  Json details = Json::object();        ///< further results of the experiment

  /// Marks the row as not counting, with the reason. An earlier reason is appended to the new one.
  void judge(Status bad, Cause why, const std::string& text);
};

/// Sets `bounds` for each figure from `bounds_of_figures`, as far as the limits are known, and flags a figure that is
/// better than its bound by more than the noise of two measurements.
void set_bounds(std::span<const Figure> figures, const Limits&, Measurement&);

/// The expression as in rows: {"quotient": [{"given": "window", "value": 64}, {"floor": "launch_sync_ns"}]}.
Json to_json(const Expression&);
/// The inverse of to_json().
Expression expression_of(const Json&);

/// A distribution as in rows.
Json to_json(const Histogram&, unsigned sampled_every);

}  // namespace feedrate
