#pragma once
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "experiments/harness/sweep/capacity.hpp"
#include "experiments/harness/sweep/progress.hpp"
#include "experiments/harness/sweep/results.hpp"

namespace feedrate {

/// Searches for the capacities of points: first it brackets each of them, one after another, then it settles all of
/// them in rounds, so that the tries which decide an answer are spread over the time of all searches. Every try and
/// every answer becomes a row.
class Capacities {
 public:
  /// `seconds_each` is the time limit of a search, whose answer may then be undecided; 0: no limit. `searches` is the
  /// total number of searches, for the progress display.
  Capacities(Session&, Results&, const std::vector<Resolution>& points, double resolution, double seconds_each,
             std::size_t searches);
  /// Brackets one point's capacity under all latency bounds, the tightest first. Each search starts where the previous
  /// one ended.
  void find(const Resolution&, const std::vector<Slo>&, unsigned repetition);
  /// Settles all searches in rounds and writes the answers.
  void settle(std::mt19937_64& random);
  /// Ends the progress display.
  void end() { progress_.end(); }
  /// Prints all answers by point and bound to stderr.
  void print_table() const;

 private:
  struct Search {
    Resolution cell;
    Slo slo;
    CapacitySearch boundary;
    Json answer;       // row of the answer
    double spent = 0;  // seconds spent on tries
  };
  Json answer_row(const Resolution&, const Slo&, unsigned repetition);
  std::string name_of(const Search&) const;
  double longest_phase() const;
  SearchSettings settings(const Slo&, std::uint64_t start) const;
  const std::string& rate_figure() const;
  std::string rate_text(double rate) const;
  std::string between_text(const Json& found) const;
  std::string answer_text(const Json& row) const;
  Json measure(const Values& point, double seconds);
  std::uint64_t closed_rate(const Values& point);
  Probe try_rate(Search&, std::uint64_t rate);
  bool do_part(Search&, double share, const std::function<void(const CapacitySearch::Try&)>& part);

  Session& session_;
  const OfferedLoad& load_;
  Results& results_;
  double resolution_, seconds_, seconds_each_;
  double spent_ =
      0;  // seconds of the current search, summed from its rows, so that a resumed search ends at the same point
  Labels labels_;
  Progress progress_;
  std::size_t all_;        // total number of searches
  std::size_t begun_ = 0;  // number of started searches
  std::string phase_;      // for the progress display
  std::vector<Search> searches_;
  std::map<std::string, unsigned> measured_;         // repetitions per point so far
  std::map<std::string, std::deque<Json>> earlier_;  // rows of an earlier run that this run has not used yet
};

/// Text of a point without its rate, because each probe has its own rate.
std::string text_without_rate(const ExperimentInfo&, const Resolution&);

}  // namespace feedrate
