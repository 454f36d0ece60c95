#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/limits/limit_list.hpp"
#include "common/registry.hpp"
#include "experiments/harness/measure/axis_table.hpp"
#include "experiments/harness/measure/chosen.hpp"
#include "experiments/harness/measure/measurement.hpp"

namespace feedrate {

class Session;       // experiments/harness/measure/session.hpp
class CellTimeline;  // experiments/harness/timeline/cell_timeline.hpp
class ExperimentInfo;

/// A point as resolved for this machine.
struct Resolution {
  Values values;           ///< values of the axes that apply; 0 or "none" for the experiment's other axes
  std::string impossible;  ///< why the point cannot be measured; empty if it can
  /// The experiment's own axes that have no effect on this point, and what is allowed instead.
  std::map<std::string, std::string> unused = {};
};

/// A repetition, and how it is measured.
struct Repetition {
  unsigned number = 0;
  CellTimeline* timeline = nullptr;  ///< records the timed phase, unless null
};

/// A question that a sweep answers. An experiment resolves a point on this machine and measures it once. The harness
/// does everything else (specs, repetitions, statistics, resume, limits, machine state, rows, reports), and refers to
/// no experiment by name. One instance serves one session.
class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual Resolution resolve(const Values&) = 0;
  /// Checks that this machine has what these points need in addition to servers, such as room for files. Throws
  /// BadInput. Also called for dry runs.
  virtual void check(std::span<const Resolution>) {}
  /// Connects to the servers that these points need, before anything is measured or written. Throws BadInput.
  virtual void connect(std::span<const Resolution>) {}
  /// Measures the limits that bound these points, in addition to the device's limits.
  virtual void add_limits(LimitList&, std::span<const Resolution>) {}
  /// Measures a possible point once. Reports errors of the measurement in the result; may throw Failure.
  virtual Measurement measure(const Resolution&, const Repetition&) = 0;
};

/// Short summary of a sweep's rows for the terminal.
class Summary {
 public:
  virtual ~Summary() = default;
  /// Adds a cell's row. Rows may arrive in any order.
  virtual void add(const Json& row) = 0;
  /// Lines of at most 80 columns; empty if there is nothing to report.
  virtual std::string text() const = 0;
  /// The points that the text names as the best of several; a sweep measures them afresh. Depends only on the rows that
  /// were not measured afresh.
  virtual std::vector<Chosen> chosen() const { return {}; }
};

/// How a capacity search offers load to an experiment's points.
struct OfferedLoad {
  std::string rate_axis;                       ///< the axis of requests offered per second
  std::function<Values(Values)> open, closed;  ///< return the point under open load, and under closed load
  std::uint64_t max_due = 0;                   ///< maximum number of requests that one phase may offer
  /// JSON pointer to a row's percentiles of response time without the load generator's own lag.
  std::string without_own_lag = {};
  /// JSON pointer to the reason why a row's requests were not kept up with; absent from other rows.
  std::string behind = {};
  std::string rate_figure = {};  ///< requests per second under closed load; empty: the experiment's rate
};

/// What the compared variants of a point do alike. Tasks are shown in their order.
struct Task {
  std::string words;
  std::uint64_t number = 0;  ///< follows the words
  std::string detail = {};   ///< follows the number if it differs between tasks
  auto operator<=>(const Task&) const = default;
};

/// Texts that the terminal shows for an experiment.
struct TerminalTexts {
  /// Summary of a sweep's rows; default: the best variant for each task by the experiment's rate, or without `task` the
  /// best variant for each headline figure.
  std::function<std::unique_ptr<Summary>()> summary = {};
  /// Lines for one row, each a name and a string; default: one line per figure.
  std::function<std::vector<std::pair<std::string, std::string>>(const ExperimentInfo&, const Json& row)> lines = {};
  /// The task of a point; none if its rate is not compared.
  std::function<std::optional<Task>(const Values&)> task = {};
};

/// Candidates in searches for the best settings and for capacities.
struct Searching {
  /// The experiment's own axes that are settings rather than part of the question, with the values to try.
  std::vector<AxisValues> settings = {};
  /// Likewise for the axes of a point's members.
  std::function<std::vector<AxisValues>(const Values&)> members = [](const Values&) {
    return std::vector<AxisValues>{};
  };
  std::optional<OfferedLoad> load = {};
};

/// Contents of the catalogue in addition to figures and axes.
struct Listing {
  /// Members by kind ("queues"): an array of objects with `name`, `description`, `unavailable`, `axes` and more.
  std::function<Json()> members = [] { return Json(Json::object()); };
  /// Adds the names of the limits that members measure to a list that does not measure.
  std::function<void(LimitList&)> limits = [](LimitList&) {};
};

struct ExperimentEntry {
  std::string description;
  std::function<AxisTable()> axes;
  std::vector<Figure> figures;
  std::vector<std::string> variant;     ///< axes that identify the compared variants
  std::vector<std::string> shown = {};  ///< axes that a point's text always shows
  std::string rate, time;               ///< figures by which repetitions are judged; `time` is a distribution
  std::function<std::unique_ptr<Experiment>(Session&)> make;
  /// Maximum number of spinning threads at a point.
  std::function<unsigned(const Values&)> threads = [](const Values&) { return 1u; };
  TerminalTexts terminal = {};
  Searching searching = {};
  Listing listing = {};
  /// Entry point of the experiment's helper processes (`feedrate helper EXPERIMENT`); returns the exit code.
  std::function<int()> helper = {};
  /// Names of options of runs that have no effect on this experiment (settings.hpp, and `trace`).
  std::set<std::string> unused_options = {};
};
using Experiments = Registry<ExperimentEntry>;
using ExperimentRegistration = Registration<ExperimentEntry>;

/// The constant parts of an experiment: its entry and its axes.
class ExperimentInfo {
 public:
  /// Throws BadInput with a list of the experiments if none has this name.
  explicit ExperimentInfo(const std::string& name);
  const std::string& name() const { return name_; }
  const ExperimentEntry& entry() const { return entry_; }
  const AxisTable& axes() const { return axes_; }
  /// Name of the variant, for example "gpu_ring" or "host_polled + pinned".
  std::string variant(const Values&) const;
  /// Lines for a row in the terminal, each a name and a string.
  std::vector<std::pair<std::string, std::string>> lines(const Json& row) const;
  /// A figure's value with its unit: "1.23 M msg/s". `figure` may be a part of a distribution: "latency_ns.p50".
  std::string text(const std::string& figure, double value) const;
  /// Short text for a point: its variant and its settings.
  std::string text(const Values&) const;
  /// " window=4Ki batch=64": the axes that have other values than their defaults or are always shown, except those in
  /// `without`.
  std::string settings(const Values&, const std::set<std::string>& without = {"device"}) const;

 private:
  std::string name_;
  const ExperimentEntry& entry_;
  AxisTable axes_;
};

inline constexpr auto kStandardExperiment = "feeding";

/// Schema version of the rows that this program writes (common/results/row.schema.json).
inline constexpr int kRowSchemaVersion = 3;

/// Identifier of a measurement: the hash of its params and repetition, as 16 hexadecimal digits.
std::string row_id(const Json& params, unsigned repetition);

/// A figure's value in a row: "messages_per_second", or "latency_ns.p99" for a distribution.
std::optional<double> figure_of(const Json& row, const std::string& name);

}  // namespace feedrate
