#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

enum class Verdict { open, sustained, not_sustained, undecided };
const char* text_of(Verdict);

/// Decides from successive tries whether a rate is sustained: Wald's sequential probability ratio test (Sequential
/// Tests of Statistical Hypotheses, 1945) between "the bound is met in at most 70 % of tries" and "in at least 95 %",
/// with an error of 5 % each way. The evidence of a try does not depend on earlier tries. Ten successive tries that
/// meet the bound are decisive, as are two that miss it. A rate between the two shares may remain undecided.
class RateTest {
 public:
  static constexpr double kAtMost = 0.70, kAtLeast = 0.95, kError = 0.05;
  static constexpr unsigned kMaxTries = 40;

  void add(bool kept);
  /// The first decision is final; later tries do not change it.
  Verdict verdict() const { return verdict_; }
  unsigned kept() const { return kept_; }
  unsigned tries() const { return tries_; }

 private:
  double evidence_ = 0;  // logarithm of the likelihood ratio in favour of "at least"
  unsigned kept_ = 0, tries_ = 0;
  Verdict verdict_ = Verdict::open;
};

/// A bound on latency: "p99:50us".
struct Slo {
  std::string percentile;  ///< p50, p90, p99 or p999
  double tail = 0;         ///< share of the messages beyond the percentile
  double bound_ns = 0;
  std::string text;
  std::string figure = "latency_ns";  ///< the figure to which the percentile belongs

  /// The row's value; none if the row has no such figure.
  std::optional<double> value_of(const Json& row) const { return figure_of(row, figure + "." + percentile); }
};
/// Throws BadInput naming `--slo`.
Slo parse_slo(const std::string& text);

/// One try of a rate in messages per second.
struct Probe {
  std::uint64_t rate = 0;
  bool kept = false;       ///< the queue kept up and met the latency bound
  std::string why = {};    ///< reason why the bound was not met; empty if it was
  bool disturbed = false;  ///< judged by evidence about the machine, not by latency; a disturbed try does not count
  std::string row = {};    ///< ID of the try's row
};

/// Judges the row of a cell that was measured at `rate`. A late generator makes response times longer, never shorter,
/// so tries with a late generator count like all others. `prompt` is the JSON pointer to the percentiles without its
/// lag.
Probe judge(std::uint64_t rate, const Json& row, const Slo&, const std::string& prompt = {});

/// Outcome of all tries at one rate in one part of a search.
struct Judged {
  std::uint64_t rate = 0;
  unsigned part = 0;  ///< 0: the search; 1: its confirmation
  unsigned tries = 0, kept = 0;
  Verdict verdict = Verdict::open;
};

/// The highest sustained rate, as an interval. `low` and all judged rates below it are sustained; `high` and all judged
/// rates above it are not. In between, the verdicts are noisy or no rate was judged.
struct Capacity {
  std::uint64_t low = 0, high = 0;  ///< low 0: not even the lowest rate was sustained; high 0: even the highest was
  std::uint64_t limit_at = 0;       ///< the lowest rate that was not sustained; 0: none
  std::string limit;                ///< the reason why it was not sustained
  std::vector<Judged> rates;        ///< in order of rate and part
  std::vector<Probe> probes;        ///< every try, in order
};

/// The `capacity` of an answer's row.
Json to_json(const Capacity&);

struct SearchSettings {
  std::uint64_t start = 1000, least = 10, most = 500'000'000;
  double resolution = 0.05;  ///< relative distance between the two rates that bracket the answer
};

/// Searches for the boundary between sustained and unsustained rates (as decided by `RateTest`). An exception from a
/// try ends the search.
class CapacitySearch {
 public:
  using Try = std::function<Probe(std::uint64_t rate)>;
  explicit CapacitySearch(const SearchSettings& settings) : settings_(settings) {}

  /// Brackets by factors of four and bisects on a logarithmic scale, with one try per step. Then judges the two rates
  /// at the boundary and moves them outwards, in steps of the resolution, until the lower rate is judged as sustained
  /// and the upper one as not. A wide gap between them is bisected again.
  void find(const Try&);
  /// Judges the two rates again and moves them outwards as before. Call it some time later, when the state of the
  /// machine may have changed.
  void again(const Try&);
  Capacity answer() const;

 private:
  void bracket(const Try&);
  void widen(const Try&);
  bool apart(double steps) const;  ///< whether the two rates differ by more than this many steps of the resolution
  bool once(const Try&, std::uint64_t rate);
  Verdict prove(const Try&, std::uint64_t rate);
  std::uint64_t scaled(std::uint64_t rate, double by) const;

  SearchSettings settings_;
  std::uint64_t low_ = 0, high_ = 0;  // 0: unknown
  unsigned part_ = 0;
  std::vector<Probe> probes_;
  std::map<std::pair<std::uint64_t, unsigned>, RateTest> tests_;  // keyed by rate and part
};

}  // namespace feedrate
