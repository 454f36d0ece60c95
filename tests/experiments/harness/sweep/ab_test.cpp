#include "experiments/harness/sweep/ab.hpp"
#include "experiments/harness/sweep/ab_power.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "common/error.hpp"
#include "experiments/harness/measure/statistics.hpp"
#include "experiments/harness/sweep/sliced_cell.hpp"

namespace feedrate::test {
namespace {

/// A comparison in which every slice takes `slice` seconds.
struct Simulated {
  double slice = 0.05;
  double clock = 0;
  std::set<std::uint64_t> impossible;
  int stop_after = 1 << 20;
  std::vector<unsigned> starts;
  std::vector<std::pair<std::uint64_t, std::string>> visits;  // points, and the sides of their slices

  void run(const AbPlan& plan) {
    std::uint64_t now = ~std::uint64_t{0};
    int slices = 0;
    measure_slices(plan, {.start = [&](unsigned start) { starts.push_back(start); },
                          .slice =
                              [&](char side, std::uint64_t point, std::uint64_t block, unsigned place) {
                                if (now != point) visits.emplace_back(now = point, "");
                                EXPECT_EQ(visits.back().second.size(), 4 * block + place);
                                visits.back().second += side;
                                clock += slice;
                                ++slices;
                                return !impossible.contains(point);
                              },
                          .end =
                              [&](std::uint64_t point) {
                                EXPECT_EQ(point, now);
                                now = ~std::uint64_t{0};
                              },
                          .stop = [&] { return slices >= stop_after; },
                          .elapsed = [&] { return clock; }});
  }
};

TEST(MeasureSlices, EveryStartVisitsAllPointsInBlocksThatCancelDrift) {
  Simulated all;
  all.run({.points = {0, 1, 2, 5}, .starts = 20, .seconds = 160});
  ASSERT_EQ(all.visits.size(), 4u * 20);
  EXPECT_EQ(all.starts.size(), 20u);
  std::map<std::string, int> orders;
  std::set<std::vector<std::uint64_t>> sequences;
  for (std::size_t start = 0; start < 20; ++start) {
    std::vector<std::uint64_t> points;
    for (std::size_t i = 4 * start; i < 4 * start + 4; ++i) {
      const auto& [point, sides] = all.visits[i];
      points.push_back(point);
      ASSERT_EQ(sides.size() % 4, 0u);
      for (std::size_t at = 0; at < sides.size(); at += 4) ++orders[sides.substr(at, 4)];
    }
    sequences.insert(points);
    EXPECT_EQ(std::set(points.begin(), points.end()), (std::set<std::uint64_t>{0, 1, 2, 5}));
  }
  EXPECT_GT(sequences.size(), 5u) << "the order of points must differ between starts";
  EXPECT_EQ(orders.size(), 2u);
  EXPECT_GT(std::min(orders["abba"], orders["baab"]), 200) << "each side must be first in about half of the blocks";
  EXPECT_NEAR(all.clock, 160, 1) << "the time must be used, and not exceeded";
}

TEST(MeasureSlices, ShortTimeStillMeasuresTwoBlocks) {
  Simulated hasty;
  hasty.run({.points = {0, 1}, .starts = 3, .seconds = 0.1});
  for (const auto& [point, sides] : hasty.visits) EXPECT_EQ(sides.size(), 4 * kLeastBlocks);
  EXPECT_EQ(hasty.visits.size(), 6u);
}

TEST(MeasureSlices, ImpossiblePointEndsItsVisit) {
  Simulated some;
  some.impossible = {1};
  some.run({.points = {0, 1}, .starts = 2, .seconds = 4});
  for (const auto& [point, sides] : some.visits) EXPECT_EQ(sides.size() == 1, point == 1);
}

TEST(MeasureSlices, SlicesEndWhenInterrupted) {
  Simulated stopped;
  stopped.stop_after = 7;
  stopped.run({.points = {0, 1}, .starts = 2, .seconds = 4});
  ASSERT_EQ(stopped.visits.size(), 1u);
  EXPECT_EQ(stopped.visits[0].second.size(), 7u);
}

TEST(PlanAb, TimeDecidesOnStartsAndPoints) {
  const AbPlan ten = plan_ab(std::vector<std::string>(10, "ring"), 600, 0.5, 0);
  EXPECT_EQ(ten.points.size(), 10u);
  EXPECT_GE(ten.starts, 30u);
  const AbPlan one = plan_ab({"ring"}, 120, 0.5, 0);
  EXPECT_GE(one.starts, 30u);
  EXPECT_EQ(plan_ab({"ring"}, 120, 0.5, 5).starts, 5u);
}

TEST(PlanAb, PointsOfAllVariantsAreKeptIfTimeIsShort) {
  std::vector<std::string> variants(100, "ring");
  variants[97] = variants[98] = variants[99] = "list";
  const AbPlan plan = plan_ab(variants, 120, 0.5, 0);
  EXPECT_GE(plan.starts, kLeastStarts);
  ASSERT_GT(plan.points.size(), 6u);
  ASSERT_LT(plan.points.size(), 100u);
  EXPECT_EQ(std::set(plan.points.begin(), plan.points.end()).size(), plan.points.size());
  EXPECT_EQ(std::vector(plan.points.end() - 3, plan.points.end()), (std::vector<std::uint64_t>{97, 98, 99}));
}

TEST(PlanAb, TooShortTimeIsRejected) {
  try {
    plan_ab({"ring"}, 12, 0.5, 0);
    FAIL() << "twelve seconds are not enough for sixteen starts";
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("--minutes: invalid value '0.2'; allowed: at least 0.53"),
              std::string::npos)
        << error.what();
  }
}

TEST(Detectable, ChangeIsFoundInFourOfFiveTrials) {
  constexpr unsigned kTrials = 4000, kStarts = 16;
  constexpr double kDeviation = 0.06;
  constexpr double kMargin = 0.01;
  const double change = std::log1p(detectable(kDeviation, kStarts, 1, kMargin));
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(change, kDeviation);
  unsigned found = 0;
  for (unsigned trial = 0; trial < kTrials; ++trial) {
    std::vector<double> logs(kStarts);
    for (double& log : logs) log = noise(random);
    found += mean_of(logs) - half_width_95(logs) > std::log1p(kMargin) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(found) / kTrials, 0.8, 0.03);
}

TEST(Detectable, OneOfManyPointsMustChangeMore) {
  EXPECT_GT(detectable(0.06, 16, 10), 1.2 * detectable(0.06, 16, 1));
  EXPECT_LT(detectable(0.06, 64, 10), 0.6 * detectable(0.06, 16, 10));
}

TEST(Quantiles, AreThoseOfTheTables) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959964, 1e-5);
  EXPECT_NEAR(normal_quantile(0.2), -0.841621, 1e-5);
  EXPECT_NEAR(student_quantile(0.975, 5), 2.570582, 0.001);
  EXPECT_NEAR(student_quantile(0.9975, 15), 3.286039, 0.001);
  EXPECT_NEAR(student_quantile(0.99975, 45), 3.751905, 0.001);
}

TEST(Spreads, LinesNameFiguresAndVariantsOfThePoints) {
  Spreads spreads;
  spreads.add("rate", "ring", 0.04);
  spreads.add("rate", "list", 0.08);
  spreads.add("rate", "list", 0.16);
  spreads.add("rate", "other", 0.5);
  const std::vector<std::string> variants{"ring", "list"};
  const std::string expected =
      fmt::format("rate: list {:.2g} to {:.2g} %, ring {:.2g} %", 100 * detectable(0.08, 36, 2),
                  100 * detectable(0.16, 36, 2), 100 * detectable(0.04, 36, 2));
  EXPECT_EQ(spreads.lines({"rate", "time.p50"}, variants, 36), std::vector{expected});
}

TEST(Spreads, ReferenceTrialsKnowTheQueuesOfFeeding) {
  const std::vector<std::string> figures{"messages_per_second", "latency_ns.p50"}, ring{"gpu_ring"};
  EXPECT_EQ(reference_spreads("feeding", "cuda").lines(figures, ring, 36).size(), 2u);
  EXPECT_TRUE(reference_spreads("feeding", "cpu").lines(figures, ring, 36).empty());
  EXPECT_TRUE(reference_spreads("launch", "cuda").lines({"launches_per_second"}, {"plain"}, 36).empty());
}

TEST(Variation, SpreadsAreThoseOfTheLogRatios) {
  Variation variation;
  for (const double factor : {0.9, 1.0, 1.1}) variation.add(1, {{"rate", 100}}, {{"rate", 100 * factor}});
  Spreads expected;
  expected.add("rate", "list", deviation_of(std::vector{std::log(0.9), 0.0, std::log(1.1)}));
  EXPECT_EQ(variation.spreads({"ring", "list"}).lines({"rate"}, {"list"}, 16), expected.lines({"rate"}, {"list"}, 16));
}

Measurement slice_of(double rate, std::uint64_t time) {
  Measurement made;
  made.numbers["rate"] = rate;
  Histogram times;
  for (int i = 0; i < 100; ++i) times.record(time);
  made.histograms["time_ns"] = {times, 1};
  return made;
}

TEST(SlicedCell, TotalHasMediansOfNumbersAndAllTimes) {
  SlicedCell cell;
  for (const double rate : {10.0, 30.0, 20.0}) {
    const Json& slice = cell.add(slice_of(rate, 1000), {{"block", 0}, {"place", 1}});
    EXPECT_EQ(slice.at("figures").at("rate"), rate);
    EXPECT_EQ(slice.at("figures").at("time_ns.p50"), 1000);
    EXPECT_EQ(slice.at("place"), 1);
  }
  const Measurement total = cell.total();
  EXPECT_EQ(total.numbers.at("rate"), 20);
  EXPECT_EQ(total.histograms.at("time_ns").first.samples(), 300u);
  EXPECT_EQ(cell.slices().size(), 3u);
}

TEST(SlicedCell, FailedSliceFailsTheTotalAndInvalidOneDoesNot) {
  Measurement invalid, failed;
  invalid.judge(Status::invalid, Cause::no_results, "none");
  failed.judge(Status::failed, Cause::wrong_results, "corrupted");
  SlicedCell cell;
  EXPECT_EQ(cell.add(invalid, {}).at("reason"), "none");
  EXPECT_EQ(cell.total().status, Status::invalid);
  cell.add(slice_of(10, 1000), {});
  EXPECT_EQ(cell.total().status, Status::ok);
  EXPECT_FALSE(cell.add(failed, {}).contains("figures"));
  cell.add(invalid, {});
  cell.add(slice_of(10, 1000), {});
  EXPECT_EQ(cell.total().status, Status::failed);
  EXPECT_EQ(cell.total().reason, "corrupted");
}

}  // namespace
}  // namespace feedrate::test
