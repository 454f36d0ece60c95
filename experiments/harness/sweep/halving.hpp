#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <vector>

namespace feedrate {

/// Looks for the best point of a grid within a budget of seconds, knowing nothing but what it tries: successive halving
/// (Karnin, Koren and Somekh, ICML 2013) among random draws, then along one axis at a time.
///
/// A fifth of the budget goes to random draws, the first of which is the start. The best eighth of them is tried again
/// for twice as long, then the best eighth of those for twice as long again, until one is left. The rest of the budget
/// goes to candidates that differ from it on one axis, by a random distance: a better one takes its place. If none is
/// better, the best is measured again, because it may have been lucky. tests/experiments/harness/sweep/halving_test.cpp holds
/// what this reaches on synthetic hills and on recorded rows. The seed and the outcomes determine everything.
class Halving {
 public:
  using Candidate = std::vector<std::size_t>;  ///< an index on each axis
  struct Trial {
    double score = 0;    ///< more is better; 0: this candidate can't be
    double seconds = 0;  ///< of the budget; 0 where nothing had to be measured
  };
  /// Tries a candidate; `rung` r asks for 2^r times the shortest measurement.
  using Try = std::function<Trial(const Candidate&, unsigned rung)>;

  /// `sizes`: how many values each axis has.
  Halving(std::vector<std::size_t> sizes, Candidate start, double budget, std::uint64_t seed);
  /// The best candidate, or the start when none could be. An exception from a try ends it.
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
