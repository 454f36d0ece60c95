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

/// Searches for the capacities of points, one after the other. When all are done, it tries their boundaries again: a
/// machine's state changes within minutes, and an answer must survive that. Every try and every answer becomes a row.
class Capacities {
 public:
  /// `seconds_each`: a search that has taken so long ends with what it knows; 0: it takes what it takes. `searches`:
  /// how many there will be, for the progress shown.
  Capacities(Session&, Results&, const std::vector<Resolution>& points, double resolution, double seconds_each,
             std::size_t searches);
  /// Searches one point under all bounds, the tightest first: each search begins where the last one ended.
  void find(const Resolution&, const std::vector<Slo>&, unsigned repetition);
  /// Tries the boundaries again, in an order of their own, and writes the answers.
  void confirm(std::mt19937_64& random);
  /// No more searches.
  void end() { progress_.end(); }
  /// All answers by point and bound, on stderr.
  void print_table() const;

 private:
  struct Search {
    Resolution cell;
    Slo slo;
    CapacitySearch boundary;
    Json answer;       // its row
    double spent = 0;  // seconds, of its tries
  };
  Json answer_row(const Resolution&, const Slo&, unsigned repetition);
  std::string name_of(const Search&) const;
  double longest_phase() const;
  SearchSettings settings(const Slo&, std::uint64_t start) const;
  std::string rate_text(double rate) const;
  std::string answer_text(const Json& row) const;
  Json measure(const Values& point, double seconds);
  std::uint64_t closed_rate(const Values& point);
  Probe try_rate(Search&, std::uint64_t rate);
  void do_part(Search&, double share, const std::function<void(const CapacitySearch::Try&)>& part);

  Session& session_;
  const OfferedLoad& load_;
  Results& results_;
  double resolution_, seconds_, seconds_each_;
  double spent_ = 0;  // of the search at hand: by its rows, so that one that is gone on with ends where it had ended
  Labels labels_;
  Progress progress_;
  std::size_t all_, begun_ = 0;  // parts of searches
  std::vector<Search> searches_;
  std::map<std::string, unsigned> measured_;         // repetitions of each point so far
  std::map<std::string, std::deque<Json>> earlier_;  // of those, what an earlier run measured and this has not used
};

/// A point without its rate: each probe has its own.
std::string text_without_rate(const Kind&, const Resolution&);

}  // namespace feedrate
