#include "experiments/harness/sweep/halving.hpp"

#include <algorithm>

namespace feedrate {
namespace {

constexpr double kDrawShare = 0.2;
constexpr unsigned kClimbRung = 1;
constexpr unsigned kMaxRoundsWithoutStep = 3;
constexpr std::size_t kLeastDraws = 3;
constexpr std::size_t kKeepOneOf = 8;
constexpr unsigned kMaxTries = 5000;  // limit for tries that use none of the budget
constexpr unsigned kMaxRedraws = 50;  // a small grid may have no untried candidates left

}  // namespace

Halving::Halving(std::vector<std::size_t> sizes, Candidate start, double budget, std::uint64_t seed)
    : sizes_(std::move(sizes)), start_(std::move(start)), budget_(budget), random_(seed) {}

Halving::Candidate Halving::find(const Try& trial) {
  std::vector<Scored> draws = draw(trial);
  if (draws.empty()) return start_;
  return climb(trial, halve(trial, std::move(draws)));
}

double Halving::attempt(const Try& trial, const Candidate& candidate, unsigned rung) {
  tried_.insert(candidate);
  ++tries_;
  const auto [score, seconds] = trial(candidate, rung);
  spent_ += seconds;
  return score;
}

bool Halving::spent() const { return spent_ >= budget_ || tries_ >= kMaxTries; }

Halving::Candidate Halving::random_candidate() {
  Candidate candidate;
  for (const std::size_t size : sizes_) {
    candidate.push_back(std::uniform_int_distribution<std::size_t>(0, size - 1)(random_));
  }
  return candidate;
}

std::vector<Halving::Scored> Halving::draw(const Try& trial) {
  std::vector<Scored> draws;
  Candidate next = start_;
  for (unsigned redraws = 0; redraws < kMaxRedraws && tries_ < kMaxTries;) {
    if (const double score = attempt(trial, next, 0); score > 0) draws.push_back({next, score});
    if (spent_ >= kDrawShare * budget_ && draws.size() >= kLeastDraws) break;
    for (redraws = 0; redraws < kMaxRedraws && tried_.contains(next); ++redraws) next = random_candidate();
  }
  return draws;
}

Halving::Scored Halving::halve(const Try& trial, std::vector<Scored> left) {
  const auto better = [](const Scored& a, const Scored& b) { return a.score > b.score; };
  std::sort(left.begin(), left.end(), better);
  for (unsigned rung = 1; left.size() > 1 && !spent(); ++rung) {
    left.resize((left.size() + kKeepOneOf - 1) / kKeepOneOf);
    for (Scored& one : left) one.score = attempt(trial, one.candidate, rung);
    std::sort(left.begin(), left.end(), better);
  }
  return left.front();
}

Halving::Candidate Halving::climb(const Try& trial, Scored best) {
  struct Step {
    std::size_t axis;
    bool up;
  };
  std::vector<Step> steps;
  for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
    steps.push_back({axis, true});
    steps.push_back({axis, false});
  }
  std::set<Candidate> climbed{best.candidate};
  for (unsigned rounds_without_step = 0; rounds_without_step < kMaxRoundsWithoutStep;) {
    bool moved = false;
    std::shuffle(steps.begin(), steps.end(), random_);
    for (const auto& [axis, up] : steps) {
      // After a better step, the next one continues from there in the same direction.
      while (true) {
        if (spent()) return best.candidate;
        Candidate next = best.candidate;
        if (up ? next[axis] + 1 == sizes_[axis] : next[axis] == 0) break;
        // A random distance: single steps would get stuck on a score that changes only after several steps.
        const std::size_t room = up ? sizes_[axis] - 1 - next[axis] : next[axis];
        const std::size_t far = std::uniform_int_distribution<std::size_t>(1, room)(random_);
        up ? next[axis] += far : next[axis] -= far;
        if (!climbed.insert(next).second) break;
        const double score = attempt(trial, next, kClimbRung);
        if (score <= best.score) break;
        best = {std::move(next), score};
        moved = true;
      }
    }
    if (climbed.size() == 1) return best.candidate;  // the best candidate has no neighbours
    rounds_without_step = moved ? 0 : rounds_without_step + 1;
    if (moved) continue;
    // Its score may be the highest only by luck. Measuring it again gives its neighbours another chance.
    best.score = attempt(trial, best.candidate, kClimbRung + rounds_without_step);
    climbed = {best.candidate};
  }
  return best.candidate;
}

}  // namespace feedrate
