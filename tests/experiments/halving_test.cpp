#include "experiments/halving.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "common/hash.hpp"

namespace feedrate::test {
namespace {

using Candidate = Halving::Candidate;

/// A hill whose top is at `top`: each step away from it on any axis costs a share of the height.
struct Hill {
  Candidate top;
  double noise = 0, seconds = 0.1;
  mutable std::mt19937_64 random{7};
  mutable double spent = 0;
  mutable std::vector<std::pair<Candidate, unsigned>> tries = {};

  double height(const Candidate& at) const {
    double height = 100;
    for (std::size_t i = 0; i < top.size(); ++i) {
      height *= std::pow(0.8, std::abs(static_cast<double>(at[i]) - static_cast<double>(top[i])));
    }
    return height;
  }
  Halving::Trial operator()(const Candidate& at, unsigned rung) const {
    const double takes = seconds * (1u << rung);
    spent += takes;
    tries.emplace_back(at, rung);
    // Longer measurements vary less.
    return {height(at) * std::exp(std::normal_distribution<double>(0, noise / std::sqrt(1u << rung))(random)), takes};
  }
};

Candidate find(const Hill& hill, const Candidate& start, double budget, std::uint64_t seed = 1) {
  return Halving(std::vector<std::size_t>(start.size(), 6), start, budget, seed).find(std::cref(hill));
}

TEST(Halving, FindsTheTop) {
  const Hill hill{{5, 4, 3, 5}};
  EXPECT_EQ(find(hill, {1, 1, 0, 0}, 20), hill.top);
}

TEST(Halving, BeginsAtTheStartAndGoesOnWithFewerForLonger) {
  const Hill hill{{5, 4, 3, 5}};
  find(hill, {1, 1, 0, 0}, 10);
  EXPECT_EQ(hill.tries.front(), (std::pair{Candidate{1, 1, 0, 0}, 0u}));
  std::map<unsigned, int> at_rung;
  for (const auto& [candidate, rung] : hill.tries) ++at_rung[rung];
  EXPECT_EQ(at_rung[0], 20) << "a fifth of the budget";
  EXPECT_GE(at_rung[1], 7) << "the better third, and what is climbed over";
  EXPECT_EQ(at_rung[2], 3) << "the better third of these";
  EXPECT_EQ(at_rung[3], 1);
}

TEST(Halving, KeepsToItsBudget) {
  for (const double budget : {0.5, 3.0, 10.0}) {
    const Hill hill{{5, 4, 3, 5}};
    find(hill, {0, 0, 0, 0}, budget);
    EXPECT_LE(hill.spent, budget + 0.8) << "the last measurement may end after it";
  }
}

TEST(Halving, TheSameSeedMakesTheSameTries) {
  const Hill one{{5, 4, 3, 5}}, two{{5, 4, 3, 5}}, other{{5, 4, 3, 5}};
  find(one, {0, 0, 0, 0}, 5, 1);
  find(two, {0, 0, 0, 0}, 5, 1);
  find(other, {0, 0, 0, 0}, 5, 2);
  EXPECT_EQ(one.tries, two.tries);
  EXPECT_NE(one.tries, other.tries);
}

TEST(Halving, ComesNearTheTopThroughNoise) {
  int near = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Hill hill{{5, 2, 4, 1}, 0.2};
    hill.random.seed(seed);
    near += hill.height(find(hill, {0, 0, 0, 0}, 6, seed)) >= 70 ? 1 : 0;
  }
  EXPECT_GE(near, 90);
}

TEST(Halving, WhatIsImpossibleCostsNothing) {
  const auto only_even = [](const Candidate& at, unsigned) -> Halving::Trial {
    if (at[0] % 2 == 1) return {};
    return {static_cast<double>(at[0] + at[1]), 0.1};
  };
  const Candidate best = Halving({6, 6}, {1, 0}, 5, 1).find(only_even);
  EXPECT_EQ(best, (Candidate{4, 5}));
}

TEST(Halving, WhereNothingIsPossibleTheStartRemains) {
  const auto nothing = [](const Candidate&, unsigned) -> Halving::Trial { return {}; };
  EXPECT_EQ(Halving({3, 3}, {1, 2}, 5, 1).find(nothing), (Candidate{1, 2}));
}

TEST(Halving, AGridOfOnePointIsTriedOnce) {
  const Hill hill{{0}};
  EXPECT_EQ(Halving({1}, {0}, 5, 1).find(std::cref(hill)), Candidate{0});
  EXPECT_EQ(hill.tries.size(), 1u);
}

}  // namespace
}  // namespace feedrate::test
