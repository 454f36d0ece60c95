#include "common/floor_list.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace feedrate {
namespace {

TEST(FloorList, ReadsEachFloorOnceARoundAndKeepsAllReadings) {
  FloorList list;
  double next = 0;
  const auto read = [&] {
    for (int twice = 0; twice < 2; ++twice) list.add("a_ns", "ns", "grows", [&] { return next; });
  };
  for (const double value : {5.0, 1.0, 9.0, 2.0, 3.0}) {
    next = value;
    list.begin_round();
    read();
  }
  ASSERT_EQ(list.floors().size(), 1u);
  const Floor& floor = list.floors()[0];
  EXPECT_EQ(floor.readings, (std::vector<double>{5, 1, 9, 2, 3}));
  EXPECT_EQ(floor.median(), 3);
  EXPECT_EQ(floor.least(), 1);
  EXPECT_EQ(floor.greatest(), 9);
}

TEST(FloorList, LeavesOutAReadingThatFails) {
  FloorList list;
  for (const bool fails : {false, true, false}) {
    list.begin_round();
    list.add("a_ns", "ns", "", [&]() -> double {
      if (fails) throw Failure("planted");
      return 7;
    });
  }
  EXPECT_EQ(list.floors().at(0).readings.size(), 2u);
}

TEST(FloorList, NamesWithoutMeasuring) {
  FloorList list(false);
  list.add("a_ns", "ns", "text", []() -> double { throw Failure("was measured"); });
  EXPECT_EQ(list.floors().at(0).description, "text");
  EXPECT_TRUE(list.floors()[0].readings.empty());
}

TEST(FloorList, AReadingOfManyTimingsEndsWhenItsTimeIsOver) {
  unsigned calls = 0;
  EXPECT_GE(median_ns(100, [&] { ++calls; }), 0);
  EXPECT_EQ(calls, 110u) << "a tenth warms up";
  calls = 0;
  median_ns(
      1'000'000, [&] { ++calls; }, 0);
  EXPECT_LE(calls, 11u) << "no more than the least, when there is no time";
}

}  // namespace
}  // namespace feedrate
