#include "common/limits/expression.hpp"

#include <gtest/gtest.h>

namespace feedrate {
namespace {

const Limits kLimits{{"trip_ns", 2'000}, {"launch_ns", 6'000}, {"bus_bytes_per_second", 50e9}};

TEST(Expression, ValuesAreInSecondsAndPerSecond) {
  EXPECT_DOUBLE_EQ(*floor_of("trip_ns").value(kLimits), 2e-6);
  EXPECT_DOUBLE_EQ(*ceiling_of("bus_bytes_per_second").value(kLimits), 50e9);
  const Expression time = 2 * floor_of("trip_ns") + floor_of("launch_ns");
  EXPECT_DOUBLE_EQ(*time.value(kLimits), 10e-6);
  EXPECT_DOUBLE_EQ(*(given("window", 32) / time).value(kLimits), 3.2e6);
  EXPECT_DOUBLE_EQ(*(given("batch", 4) * ceiling_of("bus_bytes_per_second") / given("bytes", 100)).value(kLimits), 2e9);
}

TEST(Expression, ExpressionHasNoValueIfALimitWasNotMeasured) {
  EXPECT_FALSE((floor_of("trip_ns") + floor_of("other_ns")).value(kLimits));
  EXPECT_FALSE((1 / ceiling_of("other_per_second")).value(kLimits));
}

TEST(Expression, TextHasBracketsOnlyIfNeeded) {
  EXPECT_EQ((given("window", 32) / (2 * floor_of("trip_ns") + floor_of("launch_ns"))).text(),
            "window / (2 × trip_ns + launch_ns)");
  EXPECT_EQ((given("workers", 1) * given("batch", 4) * ceiling_of("launch_per_second")).text(),
            "workers × batch × launch_per_second");
  EXPECT_EQ((given("batch", 4) / (given("a", 1) * floor_of("trip_ns"))).text(), "batch / (a × trip_ns)");
  EXPECT_EQ(((floor_of("a_ns") + floor_of("b_ns")) * 2).text(), "(a_ns + b_ns) × 2");
}

TEST(Expression, NestedSumsAreFlattenedAndQuotientsKeepTheirOrder) {
  const Expression sum = floor_of("a_ns") + (floor_of("b_ns") + floor_of("c_ns"));
  EXPECT_EQ(sum.parts().size(), 3u);
  EXPECT_DOUBLE_EQ(*(Expression(8) / 4 / 2).value({}), 1);
  EXPECT_DOUBLE_EQ(*(Expression(8) / (Expression(4) / 2)).value({}), 4);
}

}  // namespace
}  // namespace feedrate
