#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/sweep/rate_test.hpp"

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
  bool kept = false;       ///< the queue kept up, and the bound was kept
  std::string why = {};    ///< it was not kept; empty when it was
  bool disturbed = false;  ///< by the machine's own evidence, which knows no latency: it counts neither way
  std::string row = {};    ///< the id of its row
};

/// What the row of a cell that was measured at `rate` says. A late generator makes responses longer, never shorter, and
/// its tries count like all others; `prompt` is where the row has the percentiles without its lag.
Probe judge(std::uint64_t rate, const Json& row, const Slo&, const std::string& prompt = {});

/// What all tries of one rate in one part of a search came to.
struct Judged {
  std::uint64_t rate = 0;
  unsigned part = 0;  ///< 0: the search; 1: when it was tried again
  unsigned tries = 0, kept = 0;
  Verdict verdict = Verdict::open;
};

/// The highest sustained rate, as an interval. `low` was judged as sustained, and nothing below it as anything else;
/// `high` as not sustained, and nothing above it as anything else. In between noise decides, or nothing was judged.
struct Capacity {
  std::uint64_t low = 0, high = 0;  ///< low 0: not even the least rate was sustained; high 0: even the most was
  std::uint64_t limit_at = 0;       ///< the lowest rate that was not sustained; 0: none
  std::string limit;                ///< why it was not
  std::vector<Judged> rates;        ///< in order of rate and part
  std::vector<Probe> probes;        ///< every try, in order
};

struct SearchSettings {
  std::uint64_t start = 1000, least = 10, most = 500'000'000;
  double resolution = 0.05;  ///< how close the two rates come that bracket the answer, as a share
};

/// Looks for the boundary between rates that are sustained and rates that are not (`RateTest` is the rule). An
/// exception from a try ends it.
class CapacitySearch {
 public:
  using Try = std::function<Probe(std::uint64_t rate)>;
  explicit CapacitySearch(const SearchSettings& settings) : settings_(settings) {}

  /// Brackets by factors of four and bisects on a logarithmic scale, one try a step. Then the two rates at the boundary
  /// are judged; each of them moves outwards, a step of the resolution at a time, until the one is judged as sustained
  /// and the other as not. Where that leaves a wide gap, it is bisected again.
  void find(const Try&);
  /// Call it some time later, when the machine may be in another state: the two rates are judged afresh, and move
  /// outwards as before.
  void again(const Try&);
  Capacity answer() const;

 private:
  void bracket(const Try&);
  void widen(const Try&);
  bool apart(double steps) const;  ///< the two rates, by more than so many steps of the resolution
  bool once(const Try&, std::uint64_t rate);
  Verdict prove(const Try&, std::uint64_t rate);
  std::uint64_t scaled(std::uint64_t rate, double by) const;

  SearchSettings settings_;
  std::uint64_t low_ = 0, high_ = 0;  // 0: not known
  unsigned part_ = 0;
  std::vector<Probe> probes_;
  std::map<std::pair<std::uint64_t, unsigned>, RateTest> tests_;  // by rate and part
};

}  // namespace feedrate
