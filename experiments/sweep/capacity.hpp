#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/measure/experiment.hpp"

namespace feedrate {

/// A bound on latency: "p99:50us".
struct Slo {
  std::string percentile;  ///< p50, p90, p99 or p999
  double bound_ns = 0;
  std::string text;
  std::string figure = "latency_ns";  ///< whose percentile it is

  /// The row's value; none where nothing was measured.
  std::optional<double> value_of(const Json& row) const { return figure_of(row, figure + "." + percentile); }
};
/// Throws BadInput naming --slo.
Slo parse_slo(const std::string& text);

/// One try of a rate, messages a second.
struct Probe {
  std::uint64_t rate = 0;
  bool sustained = false;  ///< the queue kept up, and the bound was kept
  std::string why = {};    ///< it was not sustained; empty when it was
  std::string row = {};    ///< the id of its row
};

/// Judges `rate` by the row of a cell that was measured at it. A late generator makes responses longer, never shorter,
/// so a bound that is kept in spite of that counts as kept. A disturbed row never counts as sustained.
Probe judge(std::uint64_t rate, const Json& row, const Slo&);

/// The bound is missed, and would be kept without the generator's own lag.
bool generator_decides(const Json& row, const Slo&);

/// The highest sustained rate, as an interval: every probe at or below `low` was sustained, none at or above `high`.
/// In between, noise decides or nothing was tried.
struct Capacity {
  std::uint64_t low = 0, high = 0;  ///< low 0: not even the least rate was sustained; high 0: even the most was
  std::string limit;                ///< why the lowest rate that was not sustained failed
  std::vector<Probe> probes;
};

struct SearchSettings {
  std::uint64_t start = 1000, least = 10, most = 500'000'000;
  double resolution = 0.05;  ///< how close the two rates come that bracket the answer, as a share
  unsigned repeats = 3;      ///< tries of each of these two, which must agree
};

/// Looks for the boundary between rates that are sustained and rates that are not. An exception from a try ends it.
class CapacitySearch {
 public:
  using Try = std::function<Probe(std::uint64_t rate)>;
  explicit CapacitySearch(const SearchSettings& settings) : settings_(settings) {}

  /// Brackets by factors of four, bisects on a logarithmic scale, and tries the two rates at the boundary again; each
  /// of them moves outwards, a step of the resolution at a time, until all its tries agree.
  void find(const Try&);
  /// Call it some time later, when the machine may be in another state: it repeats the tries of the two rates, which
  /// move outwards as before.
  void again(const Try&);
  Capacity answer() const;

 private:
  bool bracket(const Try&);
  void widen(const Try&, bool afresh);
  bool once(const Try&, std::uint64_t rate);
  bool always(const Try&, std::uint64_t rate, bool sustained, bool afresh);
  std::uint64_t scaled(std::uint64_t rate, double by) const;

  struct Count {
    unsigned good = 0, all = 0;
  };
  SearchSettings settings_;
  std::uint64_t low_ = 0, high_ = 0;  // 0: not known
  bool tried_again_ = false;
  std::vector<Probe> probes_;
  std::map<std::uint64_t, Count> counts_;  // of probes, by rate
};

}  // namespace feedrate
