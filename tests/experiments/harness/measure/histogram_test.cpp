#include "experiments/harness/measure/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace feedrate {
namespace {

TEST(Histogram, EveryValueLiesInItsBucket) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t value = random() >> (24 + random() % 40);
    const auto index = Histogram::index_of(value);
    ASSERT_LT(index, Histogram::kBuckets);
    ASSERT_GE(value, Histogram::lowest(index));
    ASSERT_LT(value, Histogram::lowest(index) + Histogram::width(index));
  }
}

TEST(Histogram, BucketsAreAdjacentAndAtMostOnePercentWide) {
  for (std::size_t i = 0; i + 1 < Histogram::kBuckets; ++i) {
    ASSERT_EQ(Histogram::lowest(i) + Histogram::width(i), Histogram::lowest(i + 1)) << i;
    if (Histogram::width(i) > 1) {
      ASSERT_LE(static_cast<double>(Histogram::width(i)) / static_cast<double>(Histogram::lowest(i)), 0.01) << i;
    }
  }
}

TEST(Histogram, QuantilesAgreeWithSortedSamples) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(9, 1.5);
  Histogram histogram;
  std::vector<std::uint64_t> samples(50'000);
  for (auto& sample : samples) histogram.record(sample = static_cast<std::uint64_t>(latency(random)));
  std::sort(samples.begin(), samples.end());
  for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto exact = static_cast<double>(samples[static_cast<std::size_t>(std::max(0.0, q * 50'000 - 1))]);
    EXPECT_NEAR(histogram.quantile(q), exact, 0.01 * exact + 1) << q;
  }
  EXPECT_EQ(histogram.min(), samples.front());
  EXPECT_EQ(histogram.max(), samples.back());
}

TEST(Histogram, OverflowIsCountedAndNotClamped) {
  Histogram histogram;
  histogram.record(100);
  histogram.record(std::uint64_t{1} << 41);
  EXPECT_EQ(histogram.samples(), 2u);
  EXPECT_EQ(histogram.overflow(), 1u);
  EXPECT_EQ(histogram.max(), std::uint64_t{1} << 41);
  EXPECT_EQ(histogram.quantile(1), static_cast<double>(std::uint64_t{1} << 41));
}

TEST(Histogram, MergingEqualsRecordingTogether) {
  Histogram a, b, both;
  for (std::uint64_t v = 1; v < 100'000; v += 7) {
    (v % 2 != 0 ? a : b).record(v);
    both.record(v);
  }
  a.merge(b);
  EXPECT_EQ(a.samples(), both.samples());
  EXPECT_EQ(a.quantile(0.9), both.quantile(0.9));
  EXPECT_EQ(a.mean(), both.mean());
  EXPECT_EQ(a.min(), both.min());
}

TEST(Histogram, InterpolatedQuantileResolvesChangesWithinABucket) {
  constexpr std::uint64_t kBase = 1 << 20;  // a bucket here is 2^13 wide
  const auto median_from = [](std::uint64_t from) {
    Histogram histogram;
    for (std::uint64_t i = 0; i < 4096; ++i) histogram.record(from + 8 * i);
    return histogram.interpolated(0.5);
  };
  EXPECT_NEAR(median_from(kBase), kBase + 4 * 4096, 200);
  EXPECT_NEAR(median_from(kBase + 1000) - median_from(kBase), 1000, 200);
  Histogram one;
  one.record(777'777);
  EXPECT_EQ(one.interpolated(0.99), 777'777);
}

TEST(Histogram, EmptyHistogramHasNoQuantiles) { EXPECT_EQ(Histogram().quantile(0.5), 0); }

}  // namespace
}  // namespace feedrate
