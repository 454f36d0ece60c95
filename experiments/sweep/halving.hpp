#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <vector>

namespace feedrate {

/// Looks for the best point of a grid within a budget of seconds, knowing nothing but what it tries: successive halving
/// (Karnin, Koren and Somekh, ICML 2013) among random draws, then one step at a time.
///
/// A fifth of the budget goes to draws, the first of which is where it starts. The better third of them is tried again
/// for twice as long, of these again the better third for twice as long as that, until one is left. The rest of the
/// budget goes to its neighbours, one axis and one step at a time: a better one takes its place. Where none is better,
/// the best is measured again, for luck may have put it there. Of made-up hills and of recorded rows
/// (tests/experiments/sweep/halving_test.cpp) more is found by climbing than by more draws. Everything follows from the
/// seed and the outcomes.
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
