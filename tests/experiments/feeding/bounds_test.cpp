#include "experiments/feeding/bounds.hpp"

#include <gtest/gtest.h>

#include "variants/transfer.hpp"

namespace feedrate::test {
namespace {

BoundRatio latency_bound(const Floors& floors) {
  Point point;
  point.device = "cuda";
  point.queue = "gpu_ring";
  point.transfer = kNoTransfer;
  return bounds_of(point, floors, {}, 1e6, 2400)["latency_ns"];
}

TEST(Bounds, TheRingsLatencyIsSetAgainstTheFasterProbe) {
  EXPECT_EQ(latency_bound({{"word_round_trip_ns", 2240}, {"lone_message_ns", 1900}}).floor, "lone_message_ns");
  EXPECT_EQ(latency_bound({{"word_round_trip_ns", 1800}, {"lone_message_ns", 1900}}).floor, "word_round_trip_ns");
  EXPECT_EQ(latency_bound({{"word_round_trip_ns", 2240}}).floor, "word_round_trip_ns");
  EXPECT_EQ(latency_bound({{"lone_message_ns", 1200}}).ratio, 2.0);
  EXPECT_EQ(latency_bound({}).floor, "");
}

}  // namespace
}  // namespace feedrate::test
