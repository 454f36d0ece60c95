#include "experiments/feeding/sampling.hpp"

#include <gtest/gtest.h>

#include "experiments/feeding/flow.hpp"

namespace feedrate::test {
namespace {

/// Share of a producer's time spent on timing if timing a message costs 40 ns and each of the two clock readings per
/// batch costs 50 ns.
double share_spent(double rate, const Point& point) {
  const double clocks = 2 * 50.0 / static_cast<double>(point.batch);
  return rate / timing_sampling(rate, point) * (40 + clocks) * 1e-9;
}

TEST(Sampling, TimingTakesAtMostAFiftiethOfAProducersTime) {
  Point point;
  point.batch = 64, point.producers = 1;
  for (const double rate : {1e6, 1e7, 1e8, 3e8}) {
    EXPECT_LE(share_spent(rate, point), 0.021) << rate;
    EXPECT_GE(share_spent(rate, point), 0.009)
        << rate << ": the interval is a power of two, so timing takes at least half of its budget";
  }
}

TEST(Sampling, EveryMessageOfALowRateIsTimed) {
  Point point;
  point.batch = 1, point.producers = 1;
  EXPECT_EQ(timing_sampling(1e4, point), 1u);
  EXPECT_GT(timing_sampling(1e6, point), 1u);
}

TEST(Sampling, ProducersShareTheRate) {
  Point one, four;
  one.producers = 1, four.producers = 4;
  EXPECT_EQ(timing_sampling(4e7, four), timing_sampling(1e7, one));
}

}  // namespace
}  // namespace feedrate::test
