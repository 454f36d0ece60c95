#include "experiments/harness/sweep/repeats.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "experiments/harness/measure/statistics.hpp"

namespace feedrate::test {
namespace {

Json row_of(double throughput, double p99, const std::string& status = "ok", const std::string& cause = "") {
  return {{"status", status},
          {"cause", cause},
          {"figures", {{"messages_per_second", throughput}, {"latency_ns", {{"p50", 1.0}, {"p99", p99}}}}},
          {"time", {{"duration_seconds", 1.0}}}};
}

const ExperimentEntry& judged() {
  static const ExperimentEntry entry = [] {
    ExperimentEntry made;
    made.rate = "messages_per_second";
    made.time = "latency_ns";
    return made;
  }();
  return entry;
}

RunSettings precise_settings() {
  RunSettings settings;
  settings.repetitions = 3;
  settings.precision.wanted = true;
  settings.precision.max_repetitions = 20;
  return settings;
}

TEST(Intervals, IntervalOfTheMeanUsesStudentsT) {
  const std::vector<double> values{9, 10, 11};
  EXPECT_NEAR(half_width_95(values), 4.303 * 1 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(relative_to_mean(half_width_95(values), values), half_width_95(values) / 10, 1e-12);
  EXPECT_EQ(half_width_95(std::vector<double>{1}), std::numeric_limits<double>::infinity());
}

TEST(Repeats, RepetitionsEndAtAFixedNumber) {
  RunSettings settings;
  settings.repetitions = 2;
  Repeats repeats(settings, judged());
  EXPECT_TRUE(repeats.add(row_of(1, 1)).empty());
  EXPECT_EQ(repeats.add(row_of(100, 1))["reason"], "repetitions");
  EXPECT_TRUE(repeats.enough());
}

TEST(Repeats, MetricsThatDifferTooMuchAreNamed) {
  RunSettings settings;
  settings.repetitions = 3;
  const auto stop_of = [&](std::array<double, 3> throughputs, std::array<double, 3> p99s) {
    Repeats repeats(settings, judged());
    Json stop;
    for (std::size_t i = 0; i < 3; ++i) stop = repeats.add(row_of(throughputs[i], p99s[i]));
    return stop;
  };
  const Json calm = stop_of({100, 149, 120}, {10, 29, 20});
  EXPECT_TRUE(calm["unstable"].empty()) << calm;
  EXPECT_DOUBLE_EQ(calm["spread"]["messages_per_second"], 1.49);
  EXPECT_DOUBLE_EQ(calm["spread"]["latency_ns.p99"], 2.9);
  EXPECT_EQ(stop_of({100, 150, 120}, {10, 29, 20})["unstable"], Json::array({"messages_per_second"}));
  EXPECT_EQ(stop_of({100, 100, 100}, {30, 10, 20})["unstable"], Json::array({"latency_ns.p99"}));
}

TEST(Repeats, RepetitionsContinueUntilBothIntervalsAreNarrow) {
  Repeats repeats(precise_settings(), judged());
  EXPECT_TRUE(repeats.add(row_of(100.0, 10)).empty());
  EXPECT_TRUE(repeats.add(row_of(100.1, 12)).empty());
  EXPECT_TRUE(repeats.add(row_of(99.9, 8)).empty()) << "throughput is known to 0.25 %, p99 to 50 %";
  Json stop;
  int more = 0;
  for (; stop.empty() && more < 30; ++more) stop = repeats.add(row_of(100, 9 + 2 * (more % 2)));
  EXPECT_EQ(stop["reason"], "most repetitions");
  EXPECT_EQ(more, 17);
  EXPECT_LT(stop["half_widths"]["messages_per_second"], 0.02);
  EXPECT_GT(stop["half_widths"]["latency_ns.p99"], 0.05);

  Repeats calm(precise_settings(), judged());
  for (int i = 0; i < 9; ++i)
    EXPECT_TRUE(calm.add(row_of(100.0 + 0.1 * (i % 2), 10)).empty()) << "too few repetitions for a verdict";
  EXPECT_EQ(calm.add(row_of(99.9, 9.9))["reason"], "precise");
}

/// Share of points whose interval contains the truth, among points that vary by `cv` and ended because they were
/// precise.
double coverage(double cv) {
  std::mt19937_64 random(1);
  RunSettings settings = precise_settings();
  settings.precision.max_repetitions = 100;
  settings.precision.latency_within = 1;
  unsigned precise = 0, right = 0;
  for (int point = 0; point < 1000; ++point) {
    std::lognormal_distribution<double> rate(-std::log1p(cv * cv) / 2, std::sqrt(std::log1p(cv * cv)));
    Repeats repeats(settings, judged());
    Json stop;
    double sum = 0;
    int count = 0;
    for (; stop.empty(); ++count) {
      const double value = rate(random);
      sum += value;
      stop = repeats.add(row_of(value, 1));
    }
    if (stop["reason"] != "precise") continue;
    const double mean = sum / count, half = stop["half_widths"]["messages_per_second"];
    ++precise;
    right += std::abs(mean - 1) <= half * mean ? 1 : 0;
  }
  return precise < 50 ? 1 : static_cast<double>(right) / precise;
}

TEST(Repeats, FinalIntervalsContainTheTruth) {
  for (const double cv : {0.01, 0.035, 0.07})
    EXPECT_GE(coverage(cv), 0.93) << "at a coefficient of variation of " << cv;
}

TEST(Repeats, RepetitionsEndAtTheTimeLimit) {
  RunSettings settings = precise_settings();
  settings.precision.time_limit = 4;
  Repeats repeats(settings, judged());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(repeats.add(row_of(100 + 50 * i, 10)).empty());
  EXPECT_EQ(repeats.add(row_of(1, 10))["reason"], "time limit");
}

TEST(Repeats, DisturbedRepetitionsAreReplaced) {
  RunSettings settings;
  settings.repetitions = 2;
  Repeats repeats(settings, judged());
  const Json disturbed = row_of(1, 1, "invalid", "disturbed");
  EXPECT_TRUE(is_disturbed(disturbed));
  EXPECT_TRUE(repeats.add(disturbed).empty());
  EXPECT_TRUE(repeats.add(row_of(100, 1)).empty());
  EXPECT_EQ(repeats.add(row_of(100, 1))["disturbed"], 1);
  Repeats hopeless(settings, judged());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(hopeless.add(disturbed).empty());
  EXPECT_EQ(hopeless.add(disturbed)["reason"], "disturbed");
}

TEST(Repeats, ImpossibleOrFailingPointsAreNotRepeatedForever) {
  Repeats skipped(precise_settings(), judged());
  skipped.add(row_of(0, 0, "skipped", "impossible"));
  EXPECT_TRUE(skipped.enough());
  Repeats failing(precise_settings(), judged());
  for (int i = 0; i < 2; ++i) failing.add(row_of(0, 0, "failed", "error"));
  EXPECT_FALSE(failing.enough());
  EXPECT_EQ(failing.add(row_of(0, 0, "failed", "error"))["reason"], "not ok");
}

}  // namespace
}  // namespace feedrate::test
