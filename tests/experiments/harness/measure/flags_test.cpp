#include <gtest/gtest.h>

#include <array>

#include "experiments/harness/measure/measurement.hpp"

namespace feedrate {
namespace {

const std::array<Figure, 2> kFigures{
    {{"per_second", "1/s", Better::higher, false, true, "a rate"}, {"ns", "ns", Better::lower, true, true, "a time"}}};

std::set<Flag> flags_with(const std::string& figure, double ratio) {
  Measurement measured;
  measured.bounds[figure] = {"some_floor", 1, ratio};
  flag_above_floor(kFigures, measured);
  return measured.flags;
}

TEST(Flags, ARateAboveItsFloorIsFlaggedBeyondNoise) {
  EXPECT_EQ(flags_with("per_second", 1.06), std::set{Flag::above_floor});
  EXPECT_TRUE(flags_with("per_second", 1.04).empty());
  EXPECT_TRUE(flags_with("per_second", 0.1).empty());
}

TEST(Flags, ATimeBelowItsFloorIsFlaggedBeyondNoise) {
  EXPECT_EQ(flags_with("ns", 0.94), std::set{Flag::above_floor});
  EXPECT_TRUE(flags_with("ns", 0.96).empty());
  EXPECT_TRUE(flags_with("ns", 10).empty());
}

}  // namespace
}  // namespace feedrate
