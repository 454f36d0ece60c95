#include "experiments/feeding/bounds.hpp"

#include <gtest/gtest.h>

#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/measure/measurement.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate::test {
namespace {

/// The tightest bound of a figure with this measured value.
BoundRatio bound_of(const char* figure, double measured, const Point& point, const Limits& limits,
                    std::size_t cache_bytes = 0) {
  Measurement cell;
  if (std::string(figure) == "latency_ns") {
    Histogram one;
    one.record(static_cast<std::uint64_t>(measured));
    cell.histograms[figure] = {one, 1};
  } else {
    cell.numbers[figure] = measured;
  }
  cell.bounds_of_figures = bounds_of(point, limits, {}, cache_bytes);
  set_bounds(ExperimentInfo("feeding").entry().figures, limits, cell);
  const auto found = cell.bounds.find(figure);
  return found == cell.bounds.end() ? BoundRatio{0} : found->second;
}

BoundRatio latency_bound(const Limits& limits) {
  Point point;
  point.device = "cuda";
  point.queue = "gpu_ring";
  point.transfer = kNoTransfer;
  return bound_of("latency_ns", 2400, point, limits);
}

TEST(Bounds, RingLatencyIsBoundedByTheFasterProbe) {
  EXPECT_EQ(latency_bound({{"word_round_trip_ns", 2240}, {"lone_message_ns", 1900}}).expression.text(),
            "lone_message_ns");
  EXPECT_EQ(latency_bound({{"word_round_trip_ns", 1800}, {"lone_message_ns", 1900}}).expression.text(),
            "word_round_trip_ns");
  EXPECT_EQ(latency_bound({{"word_round_trip_ns", 2240}}).expression.text(), "word_round_trip_ns");
  EXPECT_DOUBLE_EQ(latency_bound({{"lone_message_ns", 1200}}).value, 1200);
  EXPECT_NEAR(latency_bound({{"lone_message_ns", 1200}}).ratio, 2.0, 0.05) << "the histogram rounds to buckets";
  EXPECT_EQ(latency_bound({}).value, 0) << "without a limit there is no bound";
}

// The check is exact to the byte, so a bound that is off by any factor fails.
TEST(Bounds, ThroughputIsBoundedByTheCopyRate) {
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 64;
  const auto bound = bound_of("messages_per_second", 2e7, point, {{"host_copy_bytes_per_second", 8e9}});
  EXPECT_EQ(bound.expression.text(), "host_copy_bytes_per_second / bytes");
  EXPECT_DOUBLE_EQ(bound.value, 8e9 / 80) << "64 bytes after a header of 16 bytes";
  EXPECT_DOUBLE_EQ(bound.ratio, 0.2);
}

TEST(Bounds, ThroughputIsBoundedByTheWindow) {
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 64;
  point.window = 10, point.producers = 2;
  const auto bound = bound_of("messages_per_second", 1e7, point, {{"thread_round_trip_ns", 1000}});
  EXPECT_EQ(bound.expression.text(), "window / thread_round_trip_ns");
  EXPECT_DOUBLE_EQ(bound.value, 2e7);
  EXPECT_DOUBLE_EQ(bound.ratio, 0.5);
}

TEST(Bounds, HostMemoryBoundDependsOnSlotsAndThreads) {
  const Limits limits{{"host_cache_write_bytes_per_second", 100e9}, {"host_cache_read_bytes_per_second", 110e9},
                      {"host_cache_both_bytes_per_second", 190e9},  {"host_thread_write_bytes_per_second", 10e9},
                      {"host_thread_read_bytes_per_second", 12e9},  {"host_memory_write_bytes_per_second", 25e9},
                      {"host_memory_read_bytes_per_second", 30e9},  {"host_memory_both_bytes_per_second", 28e9}};
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 1008, point.window = 1000;
  const auto bound = [&](std::size_t cache_bytes) {
    return bound_of("messages_per_second", 1e6, point, limits, cache_bytes);
  };
  EXPECT_EQ(bound(100 << 20).expression.text(), "host_cache_both_bytes_per_second / bytes");
  EXPECT_DOUBLE_EQ(bound(100 << 20).value, 190e9 / 2048);
  EXPECT_EQ(bound(1 << 10).expression.text(), "host_thread_write_bytes_per_second / bytes");
  EXPECT_DOUBLE_EQ(bound(1 << 10).value, 10e9 / 1024);
  point.producers = 8;
  EXPECT_EQ(bound(1 << 10).expression.text(), "host_memory_both_bytes_per_second / bytes");
  EXPECT_DOUBLE_EQ(bound(1 << 10).value, 28e9 / 2048);
  EXPECT_EQ(bound(0).expression.text(), "host_cache_both_bytes_per_second / bytes")
      << "an unknown cache size sets no memory bound";
  point.touch = "stamp";
  EXPECT_DOUBLE_EQ(bound(1 << 10).value, 28e9 / 160) << "a header and a stamp in each direction";
}

TEST(Bounds, ByteRateIsBoundedLikeMessageRate) {
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 64;
  const Limits limits{{"host_copy_bytes_per_second", 8e9}};
  const auto messages = bound_of("messages_per_second", 2e7, point, limits);
  const auto bytes = bound_of("bytes_per_second", 64 * 2e7, point, limits);
  EXPECT_DOUBLE_EQ(bytes.value, 64 * messages.value);
  EXPECT_DOUBLE_EQ(bytes.ratio, messages.ratio);
}

TEST(Bounds, OfferedRateHasNoBound) {
  Point point;
  point.queue = "host_polled", point.device = "cpu", point.payload = 64;
  for (const auto& [figure, expression] : bounds_of(point, {}, {}, 0, true)) EXPECT_EQ(figure, "latency_ns");
}

}  // namespace
}  // namespace feedrate::test
