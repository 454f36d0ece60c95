#include "experiments/harness/measure/chosen.hpp"

#include <gtest/gtest.h>

namespace feedrate {
namespace {

TEST(ChosenValues, OnlyThoseMeasuredAfreshCount) {
  ChosenValues values;
  for (const double value : {9.0, 9.2, 9.1}) values.add(value, false, false);
  for (const double value : {8.0, 8.1}) values.add(value, true, false);
  EXPECT_EQ(values.rank(), 9.1);
  EXPECT_EQ(values.counted(), (std::vector{8.0, 8.1}));
}

TEST(ChosenValues, AllCountIfMeasuringAfreshWasInterrupted) {
  ChosenValues values;
  for (const double value : {9.0, 9.2, 9.1}) values.add(value, false, false);
  values.add(8.0, true, false);
  EXPECT_EQ(values.rank(), 9.1);
  EXPECT_EQ(values.counted(), (std::vector{9.0, 9.2, 9.1, 8.0}));
}

TEST(ChosenValues, ResultOfASearchNeedsNoOthers) {
  ChosenValues values;
  values.add(8.0, true, false);
  EXPECT_EQ(values.rank(), 8.0);
  EXPECT_EQ(values.counted(), std::vector{8.0});
}

TEST(ChosenValues, DisturbedOnesCountOnlyWithoutOthers) {
  ChosenValues values;
  values.add(5.0, false, true);
  EXPECT_TRUE(values.disturbed());
  values.add(9.0, false, false);
  values.add(4.0, false, true);
  EXPECT_FALSE(values.disturbed());
  EXPECT_EQ(values.counted(), std::vector{9.0});
}

}  // namespace
}  // namespace feedrate
