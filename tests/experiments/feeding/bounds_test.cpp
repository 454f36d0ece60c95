#include "experiments/feeding/bounds.hpp"

#include <gtest/gtest.h>

#include "variants/feeding/transfer.hpp"

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

// To the byte: a bound that is off by any factor shows.
TEST(Bounds, ThroughputIsSetAgainstBytesOverTheFloor) {
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 64;
  const auto bound = bounds_of(point, {{"host_copy_bytes_per_second", 8e9}}, {}, 2e7, 2400)["messages_per_second"];
  EXPECT_EQ(bound.floor, "host_copy_bytes_per_second");
  EXPECT_DOUBLE_EQ(bound.value, 8e9 / 80) << "64 bytes behind a header of 16";
  EXPECT_DOUBLE_EQ(bound.ratio, 0.2);
}

TEST(Bounds, ThroughputIsSetAgainstTheWindowWhereThatBinds) {
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 64;
  point.window = 10, point.producers = 2;
  const auto bound = bounds_of(point, {{"thread_round_trip_ns", 1000}}, {}, 1e7, 2000)["messages_per_second"];
  EXPECT_EQ(bound.floor, "window/thread_round_trip_ns");
  EXPECT_DOUBLE_EQ(bound.value, 2e7);
  EXPECT_DOUBLE_EQ(bound.ratio, 0.5);
}

TEST(Bounds, HostMemoryBindsByWhereTheSlotsLieAndByTheThreads) {
  const Floors floors{{"host_cache_write_bytes_per_second", 100e9}, {"host_cache_read_bytes_per_second", 110e9},
                      {"host_cache_both_bytes_per_second", 190e9},  {"host_thread_write_bytes_per_second", 10e9},
                      {"host_thread_read_bytes_per_second", 12e9},  {"host_memory_write_bytes_per_second", 25e9},
                      {"host_memory_read_bytes_per_second", 30e9},  {"host_memory_both_bytes_per_second", 28e9}};
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 1008, point.window = 1000;
  const auto bound = [&](std::size_t cache_bytes) {
    return bounds_of(point, floors, {}, 1e6, 2000, cache_bytes)["messages_per_second"];
  };
  EXPECT_EQ(bound(100 << 20).floor, "host_cache_both_bytes_per_second");
  EXPECT_DOUBLE_EQ(bound(100 << 20).value, 190e9 / 2048);
  EXPECT_EQ(bound(1 << 10).floor, "host_thread_write_bytes_per_second");
  EXPECT_DOUBLE_EQ(bound(1 << 10).value, 10e9 / 1024);
  point.producers = 8;
  EXPECT_EQ(bound(1 << 10).floor, "host_memory_both_bytes_per_second");
  EXPECT_DOUBLE_EQ(bound(1 << 10).value, 28e9 / 2048);
  EXPECT_EQ(bound(0).floor, "host_cache_both_bytes_per_second") << "what is not known binds nothing";
  point.touch = "stamp";
  EXPECT_DOUBLE_EQ(bound(1 << 10).value, 28e9 / 160) << "of each, a header and a stamp";
}

TEST(Bounds, BytesAreBoundAsMessagesAre) {
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 64;
  auto bounds = bounds_of(point, {{"host_copy_bytes_per_second", 8e9}}, {}, 2e7, 2400);
  EXPECT_DOUBLE_EQ(bounds["bytes_per_second"].value, 64 * bounds["messages_per_second"].value);
  EXPECT_EQ(bounds["bytes_per_second"].ratio, bounds["messages_per_second"].ratio);
}

}  // namespace
}  // namespace feedrate::test
