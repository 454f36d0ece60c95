#include "experiments/harness/sweep/ab.hpp"

#include <gtest/gtest.h>

#include <map>

namespace feedrate::test {
namespace {

TEST(MeasurePairs, EveryPointIsVisitedInAbbaOrder) {
  std::vector<std::pair<char, std::uint64_t>> asked;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> reported;
  std::vector<std::pair<std::uint64_t, std::size_t>> starts;  // and the number of cells requested by then
  measure_pairs(
      {.points = 5, .pairs = 6, .per_start = 4}, [&](std::uint64_t start) { starts.emplace_back(start, asked.size()); },
      [&](char side, std::uint64_t point, std::uint64_t) {
        asked.emplace_back(side, point);
        return Json(std::string(1, side));
      },
      [&](std::uint64_t point, std::uint64_t pair, const Json& a, const Json& b) {
        EXPECT_EQ(a, "a");
        EXPECT_EQ(b, "b");
        ++reported[{point, pair}];
      },
      [] { return false; });
  ASSERT_EQ(asked.size(), 5u * 6 * 2);
  for (std::size_t visit = 0; visit < asked.size(); visit += 4) {
    std::string sides;
    for (std::size_t i = visit; i < visit + 4; ++i) {
      sides += asked[i].first;
      EXPECT_EQ(asked[i].second, asked[visit].second) << "a visit must measure one point";
    }
    EXPECT_EQ(sides, "abba");
  }
  EXPECT_EQ(reported.size(), 5u * 6) << "each pair of each point must be reported once";
  EXPECT_EQ(starts, (decltype(starts){{0, 0}, {1, 5 * 4 * 2}}));
}

TEST(MeasurePairs, PairsEndWhenInterrupted) {
  int asked = 0;
  measure_pairs(
      {.points = 5, .pairs = 6}, [](std::uint64_t) {},
      [&](char, std::uint64_t, std::uint64_t) { return Json(++asked); },
      [](std::uint64_t, std::uint64_t, const Json&, const Json&) {}, [&] { return asked == 7; });
  EXPECT_EQ(asked, 7);
}

}  // namespace
}  // namespace feedrate::test
