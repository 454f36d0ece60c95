#include "libraries/ring/lane_memory.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>

namespace feedrate {
namespace {

/// A lane notified by counter, with results in order. The test plays the role of the pollers.
class Unserved : public testing::Test {
 protected:
  Unserved() {
    RingConfig config;
    config.capacity = config.batch = 8;
    memory.emplace(*device, polled_pieces(config));
    lane = make_lane(*device, *memory, config);
  }
  void publish(std::size_t n) const {
    ASSERT_EQ(lane->reserve(n).count, n);
    lane->publish(n);
  }
  void complete(std::uint64_t first, std::uint64_t end) const {
    const LaneView view = lane->view();
    SystemMemory::store_release(view.ends[view.ring.slot(first)], end);
  }
  static std::vector<std::uint64_t> from_to(std::uint64_t first, std::uint64_t end) {
    std::vector<std::uint64_t> numbers(end - first);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
  }
  std::unique_ptr<Device> device = open_cpu_device();
  std::optional<PolledMemory> memory;
  std::unique_ptr<HostLane> lane;
};

TEST_F(Unserved, EverythingAfterAGapIsUnserved) {
  EXPECT_EQ(lane->unserved(), from_to(0, 0));
  publish(8);
  EXPECT_EQ(lane->unserved(), from_to(0, 8));
  complete(2, 4);
  EXPECT_EQ(lane->unserved(), from_to(0, 8)) << "this claim is complete, but not the one before it";
  complete(0, 2);
  EXPECT_EQ(lane->unserved(), from_to(4, 8));
}

TEST_F(Unserved, PartialReleaseOfAClaimKeepsUnservedNumbersCorrect) {
  publish(8);
  complete(0, 3);
  complete(3, 8);
  EXPECT_EQ(lane->poll(8).count, 8u) << "one poll must return both claims";
  lane->release(5);
  EXPECT_EQ(lane->unserved(), from_to(0, 0));
  publish(5);
  EXPECT_EQ(lane->unserved(), from_to(8, 13));
  EXPECT_EQ(lane->poll(8).count, 3u);
  complete(8, 10);
  EXPECT_EQ(lane->unserved(), from_to(10, 13));
}

}  // namespace
}  // namespace feedrate
