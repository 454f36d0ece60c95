#include "experiments/harness/sweep/halving.hpp"

#include "experiments/harness/sweep/recorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ranges>
#include <set>

#include "common/hash.hpp"

namespace feedrate::test {
namespace {

using Candidate = Halving::Candidate;

/// A hill whose top is at `top`: each step away from the top on any axis reduces the height by a fifth.
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
    return {height(at) * std::exp(noise / std::sqrt(1u << rung) * std::normal_distribution<double>()(random)), takes};
  }
};

Candidate find(const Hill& hill, const Candidate& start, double budget, std::uint64_t seed = 1) {
  return Halving(std::vector<std::size_t>(start.size(), 6), start, budget, seed).find(std::cref(hill));
}

TEST(Halving, SearchFindsTheTop) {
  const Hill hill{{5, 4, 3, 5}};
  EXPECT_EQ(find(hill, {1, 1, 0, 0}, 20), hill.top);
}

TEST(Halving, SearchBeginsAtTheStartAndMeasuresFewerPointsForLonger) {
  const Hill hill{{5, 4, 3, 5}};
  find(hill, {1, 1, 0, 0}, 100);
  EXPECT_EQ(hill.tries.front(), (std::pair{Candidate{1, 1, 0, 0}, 0u}));
  std::map<unsigned, int> at_rung;
  for (const auto& [candidate, rung] : hill.tries) ++at_rung[rung];
  EXPECT_EQ(at_rung[0], 200) << "the first rung gets a fifth of the budget";
  EXPECT_GE(at_rung[1], 25) << "the best eighth and the points passed while climbing";
  EXPECT_GE(at_rung[2], 4) << "the best eighth of these and the apparent top";
  EXPECT_GE(at_rung[3], 1);
  EXPECT_LT(at_rung[3], at_rung[2]);
}

TEST(Halving, SearchKeepsToItsBudget) {
  for (const double budget : {0.5, 3.0, 10.0}) {
    const Hill hill{{5, 4, 3, 5}};
    find(hill, {0, 0, 0, 0}, budget);
    EXPECT_LE(hill.spent, budget + 0.8) << "the last measurement may end after the budget";
  }
}

TEST(Halving, SameSeedMakesTheSameTries) {
  const Hill one{{5, 4, 3, 5}}, two{{5, 4, 3, 5}}, other{{5, 4, 3, 5}};
  find(one, {0, 0, 0, 0}, 5, 1);
  find(two, {0, 0, 0, 0}, 5, 1);
  find(other, {0, 0, 0, 0}, 5, 2);
  EXPECT_EQ(one.tries, two.tries);
  EXPECT_NE(one.tries, other.tries);
}

TEST(Halving, SearchComesNearTheTopDespiteNoise) {
  int near = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Hill hill{{5, 2, 4, 1}, 0.2};
    hill.random.seed(seed);
    near += hill.height(find(hill, {0, 0, 0, 0}, 6, seed)) >= 64 ? 1 : 0;  // two steps from the top
  }
  EXPECT_GE(near, 90);
}

/// Points of a variant from a sweep on an H200, by their settings. The nearest point stands in for settings between
/// them.
class Recorded {
 public:
  static constexpr std::array kAxes{"window", "batch", "producers", "workers", "streams", "block", "lanes", "pack"};
  static constexpr std::array<double, 8> kDefaults{256, 64, 1, 1, 4, 256, 0, 1};

  void add(const nlohmann::json& row) {
    std::vector<double> settings;
    for (const char* name : kAxes) settings.push_back(row["params"].value(name, 0.0));
    rates_[settings].push_back(row["figures"]["messages_per_second"]);
    const std::vector<double>& rates = rates_.at(settings);  // rates of all repetitions so far
    points_[settings] = std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
  }
  /// Rate that a search within `budget` seconds reaches, as a share of the peak. The rate of a try varies by a tenth.
  double reached(double budget, double set_up_seconds, std::uint64_t seed) const {
    std::vector<std::vector<double>> grid(kAxes.size());
    std::vector<std::size_t> sizes;
    Candidate start;
    for (std::size_t i = 0; i < grid.size(); ++i) {
      std::set<double> values;
      for (const auto& [settings, rate] : points_) values.insert(settings[i]);
      grid[i].assign(values.begin(), values.end());
      sizes.push_back(grid[i].size());
      const auto nearest = std::min_element(grid[i].begin(), grid[i].end(), [&](double a, double b) {
        return apart(a, kDefaults[i]) < apart(b, kDefaults[i]);
      });
      start.push_back(static_cast<std::size_t>(nearest - grid[i].begin()));
    }
    std::mt19937_64 random(seed);
    const auto rate_at = [&](const Candidate& at) {
      const auto distance = [&](const auto& point) {
        double sum = 0;
        for (std::size_t i = 0; i < grid.size(); ++i) sum += apart(point.first[i], grid[i][at[i]]);
        return sum;
      };
      return std::min_element(points_.begin(), points_.end(),
                              [&](const auto& a, const auto& b) { return distance(a) < distance(b); })
          ->second;
    };
    const auto attempt = [&](const Candidate& at, unsigned rung) -> Halving::Trial {
      std::normal_distribution<double> noise(0, 0.1 / std::sqrt(1u << rung));
      return {rate_at(at) * std::exp(noise(random)), set_up_seconds + 0.03 * (1u << rung)};
    };
    return rate_at(Halving(sizes, start, budget, seed).find(attempt)) / peak();
  }

 private:
  static double apart(double a, double b) { return std::abs(std::log2((a + 1) / (b + 1))); }

  double peak() const { return std::ranges::max(points_ | std::views::values); }

  std::map<std::vector<double>, std::vector<double>> rates_;
  std::map<std::vector<double>, double> points_;
};

TEST(Halving, SearchComesNearThePeakOfEveryRecordedVariant) {
  const std::filesystem::path recorded_rows = FEEDRATE_SOURCE_DIR "/results/reference/h200/rows.jsonl.xz";
  if (!std::filesystem::exists(recorded_rows)) GTEST_SKIP() << "there are no recorded rows";
  std::map<std::string, Recorded> variants;
  for (const std::string& line : read_lines(recorded_rows).whole) {
    const auto row = nlohmann::json::parse(line);
    if (row["kind"] != "cell" || !row.contains("figures") || row["params"]["payload_bytes"] != 64) continue;
    const std::string queue = row["params"]["queue"], transfer = row["params"]["transfer"];
    if (queue != "null") variants[queue + " " + transfer].add(row);  // null does not compete
  }
  ASSERT_GE(variants.size(), 10u);
  for (const auto& [name, recorded] : variants) {
    constexpr unsigned kSeeds = 20;
    constexpr double kSetUp = 0.05;  // seconds that a try takes in addition to its phases
    double sum = 0;
    for (unsigned seed = 0; seed < kSeeds; ++seed) sum += recorded.reached(3, kSetUp, seed);
    EXPECT_GE(sum / kSeeds, 0.85) << name;
  }
}

TEST(Halving, ImpossiblePointsCostNothing) {
  const auto only_even = [](const Candidate& at, unsigned) -> Halving::Trial {
    if (at[0] % 2 == 1) return {};
    return {static_cast<double>(at[0] + at[1]), 0.1};
  };
  const Candidate best = Halving({6, 6}, {1, 0}, 5, 1).find(only_even);
  EXPECT_EQ(best, (Candidate{4, 5}));
}

TEST(Halving, StartRemainsIfNothingIsPossible) {
  const auto nothing = [](const Candidate&, unsigned) -> Halving::Trial { return {}; };
  EXPECT_EQ(Halving({3, 3}, {1, 2}, 5, 1).find(nothing), (Candidate{1, 2}));
}

TEST(Halving, SearchEndsEvenIfTriesCostNothing) {
  std::mt19937_64 random(1);
  unsigned tries = 0;
  const auto free_and_random = [&](const Candidate&, unsigned) -> Halving::Trial {
    ++tries;
    return {1 + static_cast<double>(random() % 1000), 0};
  };
  Halving({6, 6, 6, 6}, {0, 0, 0, 0}, 1, 1).find(free_and_random);
  EXPECT_LE(tries, 6000u);
}

TEST(Halving, SinglePointIsTriedOnce) {
  const Hill hill{{0}};
  EXPECT_EQ(Halving({1}, {0}, 5, 1).find(std::cref(hill)), Candidate{0});
  EXPECT_EQ(hill.tries.size(), 1u);
}

}  // namespace
}  // namespace feedrate::test
