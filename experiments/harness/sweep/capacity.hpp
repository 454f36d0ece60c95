#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

enum class Verdict { open, sustained, not_sustained, undecided };
const char* text_of(Verdict);

/// Judges from all tries of a rate whether it is sustained. Two tests run side by side: one of "the bound is met in at
/// most 70 % of tries", one of "in at least 95 %". Each is an e-process, a mixture of likelihood ratios against two
/// alternatives (85 and 95 %; 85 and 70 %), and rejects its hypothesis while it is at least 100. By Ville's
/// inequality a true hypothesis is ever rejected with a probability of at most 1 %, no matter when the tries are made
/// or when they end (Ramdas, Grünwald, Vovk, Shafer: Game-Theoretic Statistics and Safe Anytime-Valid Inference,
/// Statistical Science 38, 2023; the mixture is Robbins': Statistical Methods Related to the Law of the Iterated
/// Logarithm, Annals of Mathematical Statistics 41, 1970).
class RateTest {
 public:
  static constexpr double kAtMost = 0.70, kBetween = 0.85, kAtLeast = 0.95, kError = 0.01;
  static constexpr unsigned kLeastTries = 10;  ///< fewer tries decide nothing

  void add(bool kept, bool disturbed = false);
  /// Sustained: only "at most 70 %" is rejected. Not sustained: only "at least 95 %" is. Undecided: both are, so the
  /// share lies in between. Open: neither is. Later tries may change the verdict.
  Verdict verdict() const;
  /// Positive if the bound was met in more than 6 of 7 tries, about the middle between the two hypotheses.
  int balance() const { return static_cast<int>(kept_) - 6 * static_cast<int>(tries_ - kept_); }
  unsigned kept() const { return kept_; }
  unsigned tries() const { return tries_; }
  unsigned disturbed() const { return disturbed_; }

 private:
  unsigned kept_ = 0, tries_ = 0, disturbed_ = 0;
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
  bool disturbed = false;  ///< judged by evidence about the machine; a disturbed try counts like any other
  std::string row = {};    ///< ID of the try's row
};

/// Judges the row of a cell that was measured at `rate`. Every try counts, because one that is left out after the fact
/// biases the count: a late generator and a disturbed machine make response times longer, never shorter. `prompt` is
/// the JSON pointer to the percentiles without the generator's lag, `behind` the pointer to the reason why the queue
/// did not keep up; a disturbed row has it only there.
Probe judge(std::uint64_t rate, const Json& row, const Slo&, const std::string& prompt = {},
            const std::string& behind = {});

/// Outcome of all tries at one rate.
struct Judged {
  std::uint64_t rate = 0;
  unsigned tries = 0, kept = 0, disturbed = 0;
  Verdict verdict = Verdict::open;
};

/// The highest sustained rate, as an interval. `low` is sustained and lies below all rates that are not; `high` is not
/// sustained and lies above all rates that are.
struct Capacity {
  std::uint64_t low = 0, high = 0;  ///< 0: there is no such rate
  bool undecided = false;           ///< the interval has an open end, or is wider than the resolution
  std::string limit;                ///< the reason why `high` is not sustained
  std::vector<Judged> between;      ///< if undecided, the rates strictly between the ends
  std::vector<Judged> rates;        ///< all rates, in order
  std::vector<Probe> probes;        ///< every try, in order
  unsigned disturbed = 0;           ///< number of disturbed tries
};

/// The `capacity` of an answer's row.
Json to_json(const Capacity&);

struct SearchSettings {
  std::uint64_t start = 1000, least = 10, most = 500'000'000;
  double resolution = 0.1;  ///< relative distance between the two rates that bracket the answer
};

/// Searches for the boundary between sustained and unsustained rates. All tries of a rate form one test (`RateTest`),
/// whenever they were made. The boundary is assumed to be between the two neighbouring rates that agree best with all
/// tries so far, so a try that was good or bad by chance does not mislead the search for long. An exception from a try
/// ends the search.
class CapacitySearch {
 public:
  using Try = std::function<Probe(std::uint64_t rate)>;
  static constexpr std::size_t kMaxTries = 250;
  explicit CapacitySearch(const SearchSettings& settings) : settings_(settings) {}

  /// Brackets the boundary by factors of four and bisects on a logarithmic scale, with one try per rate, until the two
  /// rates at the boundary are within the resolution.
  void find(const Try&);
  /// Makes one block of tries: one at each of the two rates at the boundary, in random order. If the boundary has moved
  /// next to a gap, tries one rate within it instead.
  void block(const Try&, std::mt19937_64& random);
  /// The rates next to the boundary, below and above it; 0: no rate was tried there.
  std::pair<std::uint64_t, std::uint64_t> boundary() const;
  /// Whether the tests have decided both rates at the boundary, or kMaxTries is reached.
  bool settled() const;
  Capacity answer() const;

 private:
  /// A rate that brackets or bisects; 0 if the boundary is within the resolution, or at the least or the highest rate.
  std::uint64_t new_rate() const;
  bool apart(std::uint64_t low, std::uint64_t high) const;
  void once(const Try&, std::uint64_t rate);
  std::uint64_t scaled(std::uint64_t rate, double by) const;

  SearchSettings settings_;
  std::vector<Probe> probes_;
  std::map<std::uint64_t, RateTest> tests_;  // keyed by rate
};

/// Settles searches in rounds: each round makes one block of every search that is not settled, in random order, so that
/// the tries of a rate are spread over the time of all searches. Six rounds of all searches follow, because the state
/// of a machine changes within minutes; then those continue that these rounds unsettled. `block` makes one block of the
/// search with this number; it returns false if that search cannot continue.
void settle_in_rounds(const std::vector<const CapacitySearch*>&, std::mt19937_64& random,
                      const std::function<bool(std::size_t)>& block);

}  // namespace feedrate
