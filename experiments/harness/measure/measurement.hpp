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
  std::string name;  ///< in rows
  std::string unit;  ///< "ns", or what is counted a second: "msg/s", "B/s"
  Better better = Better::higher;
  bool distribution = false;
  bool headline = false;  ///< reports and comparisons are about it
  std::string description;
};
/// Repetitions are unstable when the largest value is this many times the smallest, or more: of a rate or a median, and
/// of a 99th percentile.
inline constexpr double kUnstable = 1.5, kUnstableTail = 3;

enum class Status { ok, invalid, unsustainable, failed, skipped };

/// Why a row is not ok, for programs; its `reason` says it to people.
enum class Cause {
  none,
  disturbed,       ///< something else on the machine spoilt it
  driver_bound,    ///< near what the load generator alone reaches
  driver_unknown,  ///< what the load generator alone reaches could not be measured
  generator,       ///< the load generator was late, or fell behind
  backlog,         ///< the queue did not keep up with an open load
  wrong_results,   ///< lost, duplicated or corrupted
  no_results,      ///< none came within the timed phase
  interrupted,     ///< by the user
  hung,            ///< could not be stopped
  impossible,      ///< the point can't be
  error,           ///< anything else that failed
};

/// What a reader should know of a row that counts all the same.
enum class Flag {
  late_generator,  ///< the load generator's own lag is a notable part of the latencies of an open load
  unsteady,        ///< the warm-up ended at its limit, while the rate still had a trend
  above_limit,     ///< a figure is better by more than 5 % than its bound: a limit, or the figure, is wrong
};
const char* text_of(Status);
const char* text_of(Cause);
const char* text_of(Flag);

/// A figure beside the bound that it can't beat.
struct BoundRatio {
  Expression expression;
  double value = 0;  ///< of the bound, in the figure's unit
  double ratio = 0;  ///< measured / value; of a distribution its p50
};

/// What one repetition of one point came to.
struct Measurement {
  Status status = Status::ok;
  Cause cause = Cause::none;
  std::string reason;
  std::map<std::string, double> numbers;                             ///< by figure
  std::map<std::string, std::pair<Histogram, unsigned>> histograms;  ///< by figure; of every n-th message
  std::vector<std::pair<std::string, Expression>> can_not_beat;      ///< bounds of figures; the tightest of each counts
  std::map<std::string, BoundRatio> bounds;                          ///< of these the tightest, by figure; set_bounds()
  std::map<std::string, std::string> chosen;  ///< what a member chose where the point left it open; by axis
  std::set<Flag> flags;
  unsigned host_threads = 0, sms = 0;   ///< spinning threads; SMs held all the time
  Json cost = Json::object();           ///< what else the result cost
  std::optional<MachineState> machine;  ///< during the timed phase
  Json gpu_use;                         ///< of a traced cell
  Json details = Json::object();        ///< what the experiment tells besides

  /// Marks the row as one that does not count, and says why. An earlier reason is kept after the new one.
  void judge(Status bad, Cause why, const std::string& text);
};

/// Sets each figure's `bounds` from what it can't beat, as far as the limits are known, and flags what is better than
/// its bound by more than the noise of two measurements.
void set_bounds(std::span<const Figure> figures, const Limits&, Measurement&);

/// As rows have it: {"quotient": [{"given": "window", "value": 64}, {"floor": "launch_sync_ns"}]}.
Json to_json(const Expression&);
/// The same back.
Expression expression_of(const Json&);

/// A distribution as it stands in rows.
Json to_json(const Histogram&, unsigned sampled_every);

}  // namespace feedrate
