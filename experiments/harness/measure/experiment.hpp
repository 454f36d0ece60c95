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
#include "experiments/harness/measure/measurement.hpp"

namespace feedrate {

class Session;       // experiments/harness/measure/session.hpp
class CellTimeline;  // experiments/harness/timeline/cell_timeline.hpp
class Kind;

/// What becomes of a point on this machine.
struct Resolution {
  Values values;           ///< of the axes that apply; of others that the experiment owns, 0 or "none"
  std::string impossible;  ///< why it can't be measured; empty when it can
  /// The experiment's own axes that make no difference here, and what is allowed instead.
  std::map<std::string, std::string> unused = {};
};

/// Which repetition is measured, and how.
struct Repetition {
  unsigned number = 0;
  CellTimeline* timeline = nullptr;  ///< records the timed phase, when there is one
};

/// A question that a sweep answers: how a point is resolved on this machine, and measured once. The harness does the
/// rest (specs, repetitions, statistics, resume, limits, machine state, rows, reports), and knows no experiment by
/// name. One instance serves one session.
class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual Resolution resolve(const Values&) = 0;
  /// Before anything is measured or written: reaches the servers that these points need. Throws BadInput.
  virtual void connect(std::span<const Resolution>) {}
  /// Measures the limits that these points are bound by, besides the device's.
  virtual void add_limits(LimitList&, std::span<const Resolution>) {}
  /// Measures a possible point once. What goes wrong inside is told in the result; may throw Failure.
  virtual Measurement measure(const Resolution&, const Repetition&) = 0;
};

/// What a sweep's rows say at a glance, for the terminal.
class Summary {
 public:
  virtual ~Summary() = default;
  /// Takes in a cell's row, in any order.
  virtual void add(const Json& row) = 0;
  /// Lines of at most 80 columns; empty when there is nothing to say.
  virtual std::string text() const = 0;
};

/// How a search for a capacity offers load to an experiment's points.
struct OfferedLoad {
  std::string rate_axis;                       ///< its value is what is offered a second
  std::function<Values(Values)> open, closed;  ///< the point under an open load, and under a closed load
  std::uint64_t most_due = 0;                  ///< that one phase may offer
  /// Where a row has the percentiles of responses without the load generator's own lag; a JSON pointer.
  std::string without_own_lag = {};
};

/// What terminals are told of an experiment.
struct Telling {
  /// Of a sweep's rows; else the best variant of each headline figure.
  std::function<std::unique_ptr<Summary>()> summary = {};
  /// Of one row: name and text, line by line; else each figure.
  std::function<std::vector<std::pair<std::string, std::string>>(const Kind&, const Json& row)> lines = {};
};

/// What searches for the best settings and for capacities try.
struct Searching {
  /// Axes of the experiment's own that are settings, no part of the question, with the values to try.
  std::vector<AxisValues> settings = {};
  /// The same on axes that the members of a point name.
  std::function<std::vector<AxisValues>(const Values&)> members = [](const Values&) {
    return std::vector<AxisValues>{};
  };
  std::optional<OfferedLoad> load = {};
};

/// What the catalogue has besides figures and axes.
struct Listing {
  /// Members by kind ("queues"): an array of objects with `name`, `description`, `unavailable`, `axes` and more.
  std::function<Json()> members = [] { return Json(Json::object()); };
  /// Names the limits that members measure, in a list that measures nothing.
  std::function<void(LimitList&)> limits = [](LimitList&) {};
};

struct ExperimentEntry {
  std::string description;
  std::function<AxisTable()> axes;
  std::vector<Figure> figures;
  std::vector<std::string> variant;     ///< axes that name what is compared
  std::vector<std::string> shown = {};  ///< axes that stand in a point's text whatever their value
  std::string rate, time;               ///< the figures that repetitions are judged by; `time` is a distribution
  std::function<std::unique_ptr<Experiment>(Session&)> make;
  /// The most threads that spin at a point.
  std::function<unsigned(const Values&)> threads = [](const Values&) { return 1u; };
  Telling telling = {};
  Searching searching = {};
  Listing listing = {};
  /// What a process does that the experiment starts beside its own, as `feedrate helper EXPERIMENT`; its exit code.
  std::function<int()> helper = {};
};
using Experiments = Registry<ExperimentEntry>;
using ExperimentRegistration = Registration<ExperimentEntry>;

/// An experiment's parts that never change: its entry and its axes.
class Kind {
 public:
  /// Throws BadInput listing the experiments.
  explicit Kind(const std::string& name);
  const std::string& name() const { return name_; }
  const ExperimentEntry& entry() const { return entry_; }
  const AxisTable& axes() const { return axes_; }
  /// "gpu_ring", or "host_polled + pinned".
  std::string variant(const Values&) const;
  /// What a row tells, for a terminal: name and text, line by line.
  std::vector<std::pair<std::string, std::string>> lines(const Json& row) const;
  /// A figure's value with its unit, for people: "1.23 M msg/s". Of a distribution's part, "latency_ns.p50", too.
  std::string text(const std::string& figure, double value) const;
  /// The point in a few words: its variant and its settings.
  std::string text(const Values&) const;
  /// " window=4Ki batch=64": the axes whose values are not as usual or are always shown, but those `without`.
  std::string settings(const Values&, const std::set<std::string>& without = {"device"}) const;

 private:
  std::string name_;
  const ExperimentEntry& entry_;
  AxisTable axes_;
};

inline constexpr auto kStandardExperiment = "feeding";

/// Identifies a measurement: hash of its params and repetition, 16 hexadecimal digits.
std::string row_id(const Json& params, unsigned repetition);

/// The number that a row has for a figure: "messages_per_second", or "latency_ns.p99" of a distribution.
std::optional<double> figure_of(const Json& row, const std::string& name);

}  // namespace feedrate
