#include <gtest/gtest.h>

#include <array>

#include "experiments/harness/measure/measurement.hpp"

namespace feedrate {
namespace {

const std::array<Figure, 2> kFigures{
    {{"per_second", "1/s", Better::higher, false, true, "a rate"}, {"ns", "ns", Better::lower, true, true, "a time"}}};

std::set<Flag> flags_with(const std::string& figure, double ratio) {
  Measurement measured;
  Histogram times;
  for (int i = 0; i < 10; ++i) times.record(static_cast<std::uint64_t>(1000 * ratio));
  measured.numbers["per_second"] = 1000 * ratio;
  measured.histograms["ns"] = {times, 1};
  measured.bounds_of_figures.emplace_back(figure, figure == "ns" ? Expression(1e-6) : Expression(1000));
  set_bounds(kFigures, {}, measured);
  return measured.flags;
}

TEST(SetBounds, TightestBoundOfEachFigureCounts) {
  Measurement measured;
  measured.numbers["per_second"] = 10;
  for (const double rate : {200.0, 20.0, 40.0}) measured.bounds_of_figures.emplace_back("per_second", rate);
  for (const char* name : {"a_ns", "b_ns", "unknown_ns"}) measured.bounds_of_figures.emplace_back("ns", floor_of(name));
  Histogram times;
  times.record(16);
  measured.histograms["ns"] = {times, 1};
  set_bounds(kFigures, {{"a_ns", 4}, {"b_ns", 8}}, measured);
  EXPECT_EQ(measured.bounds.at("per_second").value, 20);
  EXPECT_EQ(measured.bounds.at("per_second").ratio, 0.5);
  EXPECT_EQ(measured.bounds.at("ns").expression.name(), "b_ns");
  EXPECT_DOUBLE_EQ(measured.bounds.at("ns").ratio, 2);
}

TEST(SetBounds, ExpressionInARowIsUnchangedWhenReadBack) {
  const Expression bound = given("window", 32) / (2 * floor_of("trip_ns") + 1 / ceiling_of("push_per_second"));
  EXPECT_EQ(to_json(bound).dump(),
            R"({"quotient":[{"given":"window","value":32.0},{"sum":[{"product":[2.0,{"floor":"trip_ns"}]},)"
            R"({"quotient":[1.0,{"ceiling":"push_per_second"}]}]}]})");
  EXPECT_EQ(to_json(expression_of(to_json(bound))), to_json(bound));
}

TEST(Flags, RateAboveItsBoundIsFlaggedBeyondNoise) {
  EXPECT_EQ(flags_with("per_second", 1.06), std::set{Flag::above_limit});
  EXPECT_TRUE(flags_with("per_second", 1.04).empty());
  EXPECT_TRUE(flags_with("per_second", 0.1).empty());
}

TEST(Flags, TimeBelowItsBoundIsFlaggedBeyondNoise) {
  EXPECT_EQ(flags_with("ns", 0.94), std::set{Flag::above_limit});
  EXPECT_TRUE(flags_with("ns", 0.96).empty());
  EXPECT_TRUE(flags_with("ns", 10).empty());
}

}  // namespace
}  // namespace feedrate
