#include <algorithm>
#include <cstring>
#include <random>

#include "common/clock.hpp"
#include "libraries/ring/lane_memory.hpp"
#include "tests/support/cells.hpp"
#include "tests/support/points.hpp"

namespace feedrate::test {
namespace {

class RingOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// Units arrive one by one, in any order and with pauses, among units of earlier laps. The pollers must not claim the
/// message before its last unit has arrived.
class RingOfUnits : public RingOnGpu, public testing::WithParamInterface<unsigned> {};
TEST_P(RingOfUnits, MessageIsClaimedOnlyAfterItsLastUnitArrives) {
  constexpr std::size_t kPayload = 200, kMessages = 2000;
  const auto device = open_device("cuda");
  const auto echo = Workloads::instance().get("--workload", "echo").make({});
  RingConfig config;
  config.message_bytes = config.result_bytes = kPayload;
  config.notify = Notify::flags;
  config.capacity = 4;
  config.batch = 1;
  config.block = 128;
  config.pollers = 4;
  config.mirrors = 2;
  PolledMemory memory(*device, polled_pieces(config));
  const auto lane = make_lane(*device, memory, config);
  const Buffer views = device->allocate_host(sizeof(LaneView), HostMemory::pinned);
  auto& view = *reinterpret_cast<LaneView*>(views.data());
  view = lane->view();
  auto resident = device->start_resident(*echo, {&view, 1}, {config.block, config.pollers, {}, GetParam(), {}});
  std::mt19937 random(1);
  std::vector<std::byte> message(stride_of(kPayload) + sizeof(Unit));
  const std::uint32_t units = units_of(sizeof(Header) + kPayload);
  for (std::uint64_t number = 0; number < kMessages; ++number) {
    echo->fill(1, number, kPayload, {message.data(), stride_of(kPayload), 1});
    // Units of both mirrors in random order. The message may be claimed once either mirror is complete.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
    for (std::uint32_t mirror = 0; mirror < config.mirrors; ++mirror) {
      for (std::uint32_t i = 0; i < units; ++i) order.emplace_back(mirror, i);
    }
    std::shuffle(order.begin(), order.end(), random);
    std::uint32_t missing[2] = {units, units};
    for (const auto& [mirror, i] : order) {
      if (missing[0] != 0 && missing[1] != 0 && random() % 8 == 0) {
        for (const auto until = now_ns() + 4000; now_ns() < until;) {
        }
        ASSERT_TRUE(lane->poll(1).empty()) << "torn message " << number;
      }
      Unit unit;
      std::memcpy(unit.data, message.data() + i * kUnitData, kUnitData);
      unit.flag = flag_of(number);
      SystemMemory::store_unit(view.unit_in(number, mirror)[i], unit);
      --missing[mirror];
    }
    ConstMessages result;
    for (const auto until = now_ns() + 2'000'000'000; result.empty() && now_ns() < until;) result = lane->poll(1);
    ASSERT_EQ(result.count, 1u) << number;
    ASSERT_TRUE(echo->matches(1, number, kPayload, result)) << number;
    lane->release(1);
  }
  lane->request_stop(kStopNow);
}

INSTANTIATE_TEST_SUITE_P(FlaggedAtOnce, RingOfUnits, testing::Values(1u, 4u));

TEST_F(RingOnGpu, FlaggedBatchesStayCorrectOverManyLaps) {
  for (const char* mix : {"none", "0:0.2,64:0.5,200:0.3"}) {
    Session session("feeding", "cuda", 0, {}, "test", brief(mix == std::string("none") ? 20'000'000 : 200'000));
    Point point;
    test::set(point, "notify", "flags");
    point.producers = 2;
    test::set(point, "lanes", 8);
    test::set(point, "pollers", 2);
    point.window = 1024;
    point.batch = 128;
    point.block = 512;
    if (mix != std::string("none")) {
      point.payload = 200;
      point.payload_mix = mix;
      point.arrivals = "poisson";
      point.rate = 1'000'000;
    }
    Json row = run_cell(session, point);
    // A row is useless for this test if the generator lost its core; the cell is then repeated.
    const auto late = [&] { return row["reason"].get<std::string>().starts_with("generator"); };
    for (unsigned repetition = 1; repetition < 5 && late(); ++repetition) row = run_cell(session, point, repetition);
    expect_clean(row);
  }
}

TEST_F(RingOnGpu, BillionMessagesStayCorrectOverManyLaps) {
  Session session("feeding", "cuda", 0, {}, "test", brief(1'000'000'000));
  Point point;
  point.producers = 4;
  test::set(point, "lanes", 32);
  point.window = 8192;
  point.batch = 512;
  point.block = 512;
  const Json row = run_cell(session, point);
  expect_clean(row);
  EXPECT_EQ(row["details"]["counts"]["received"], 1'000'000'000);
}

TEST_F(RingOnGpu, OneLaneKeepsTheOrderOverAThousandLaps) {
  for (const char* slots : {"pinned", "vram"}) {
    for (const unsigned pollers : {1u, 4u}) {
      Session session("feeding", "cuda", 0, {}, "test", brief(200'000));
      Point point;
      point.window = 64;
      point.batch = pollers == 1 ? 64 : 7;
      test::set(point, "lanes", 1);  // there is no order among several lanes
      point.capacity = 128;
      test::set(point, "pollers", pollers);
      test::set(point, "slots", slots);
      const Json row = run_cell(session, point);
      expect_clean(row);
      EXPECT_EQ(row["details"]["counts"]["reordered"], 0) << "one lane must keep the order";
      EXPECT_EQ(row["chosen"]["slots"], slots);
    }
  }
}

TEST_F(RingOnGpu, ParkedLanesLeaveTheGpuAndReturn) {
  const auto device = open_device("cuda");
  const auto echo = Workloads::instance().get("--workload", "echo").make({});
  RingConfig config;
  config.lanes = 4;
  config.idle = RingIdle::park;
  config.park_after = std::chrono::milliseconds(2);
  GpuRing ring(*device, *echo, config);
  ring.start();
  for (unsigned round = 0; round < 20; ++round) {
    const auto id = ring.try_submit(std::vector<std::byte>(64));
    ASSERT_TRUE(id);
    ASSERT_EQ(ring.wait(*id, std::chrono::seconds(2)).status, RingStatus::ok) << round;
    for (const auto until = now_ns() + 500'000'000; ring.stats().parked_lanes != 4 && now_ns() < until;) {
    }
    ASSERT_EQ(ring.stats().parked_lanes, 4u) << round;
  }
  EXPECT_GE(ring.stats().restarts, 19u);
}

TEST_F(RingOnGpu, StopReturnsTheIdsWithoutAResult) {
  const auto device = open_device("cuda");
  const auto work = Workloads::instance().get("--workload", "fma_chain").make({{"flops-per-byte", 65536.0}});
  RingConfig config;
  config.block = 32;
  config.notify = Notify::flags;
  GpuRing ring(*device, *work, config);
  ring.start();
  std::vector<std::uint64_t> ids;
  for (unsigned i = 0; i < 500; ++i) ids.push_back(*ring.try_submit(std::vector<std::byte>(64)));
  const auto unanswered = ring.stop(RingStop::now);
  std::size_t answered = 0;
  for (const auto id : ids) {
    const bool lost = std::find(unanswered.begin(), unanswered.end(), id) != unanswered.end();
    const auto status = ring.wait(id, std::chrono::milliseconds(100)).status;
    EXPECT_EQ(status, lost ? RingStatus::stopped : RingStatus::ok) << id;
    answered += lost ? 0 : 1;
  }
  EXPECT_EQ(answered + unanswered.size(), ids.size());
}

}  // namespace
}  // namespace feedrate::test
