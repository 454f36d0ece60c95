#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <vector>

namespace feedrate {

/// Searches for the best point of a grid within a budget of seconds, using only the results of its tries: successive
/// halving (Karnin, Koren and Somekh, ICML 2013) among random draws, then a search along one axis at a time.
///
/// A fifth of the budget goes to random draws; the first candidate is the given start. The best eighth of them is tried
/// again for twice as long, then the best eighth of those for twice as long again, until one remains. The rest of the
/// budget goes to candidates that differ from this last candidate on one axis, by a random distance; a better candidate
/// replaces it. If none is better, the best candidate is measured again, because its score may have been lucky.
/// tests/experiments/harness/sweep/halving_test.cpp shows the results on synthetic hills and on recorded rows. The
/// search is determined by the seed and the scores.
class Halving {
 public:
  using Candidate = std::vector<std::size_t>;  ///< an index on each axis
  struct Trial {
    double score = 0;    ///< higher is better; 0: this candidate is impossible
    double seconds = 0;  ///< seconds of the budget used; 0 if no measurement was needed
  };
  /// Tries a candidate; `rung` r asks for 2^r times the shortest measurement.
  using Try = std::function<Trial(const Candidate&, unsigned rung)>;

  /// `sizes` has the number of values of each axis.
  Halving(std::vector<std::size_t> sizes, Candidate start, double budget, std::uint64_t seed);
  /// Returns the best candidate, or the start if all were impossible. An exception from a try ends the search.
  Candidate find(const Try&);

 private:
  struct Scored {
    Candidate candidate;
    double score;
  };
  double attempt(const Try&, const Candidate&, unsigned rung);
  bool spent() const;
  std::vector<Scored> draw(const Try&);
  Scored halve(const Try&, std::vector<Scored>);
  Candidate climb(const Try&, Scored);
  Candidate random_candidate();

  std::vector<std::size_t> sizes_;
  Candidate start_;
  double budget_, spent_ = 0;
  unsigned tries_ = 0;
  std::mt19937_64 random_;
  std::set<Candidate> tried_;
};

}  // namespace feedrate
