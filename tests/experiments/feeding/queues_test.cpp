#include <array>
#include <set>

#include "tests/support/cells.hpp"
#include "tests/support/long.hpp"
#include "variants/feeding/queue.hpp"

namespace feedrate::test {
namespace {

class CpuQueue : public testing::TestWithParam<Case> {};

TEST_P(CpuQueue, ReturnsEveryMessageOnceAndCorrect) {
  Session session("feeding", "cpu", 0, {}, "test", brief(GetParam().messages));
  run_case(session, GetParam());
}

/// The `null` queue at a point with 1024 slots.
class NullQueue : public testing::TestWithParam<const char*> {
 protected:
  NullQueue() {
    Point point;
    point.queue = "null";
    point.workload = GetParam();
    point.window = kSlots;
    point.batch = 16;
    const Resolved resolved = resolve(point, *device);
    workload->prepare(kPayload);
    queue = Queues::instance()
                .get("--queue", "null")
                .make({.point = resolved.point,
                       .device = *device,
                       .workload = *workload,
                       .answers = [this](std::uint64_t id, const Messages& results) {
                         workload->answer(1, id, kPayload, results);
                       }});
  }
  static constexpr std::size_t kSlots = 1024, kPayload = 64;
  std::unique_ptr<Device> device = open_device("cpu");
  std::unique_ptr<Workload> workload = Workloads::instance().get("--workload", GetParam()).make({});
  std::unique_ptr<Queue> queue;
};

// If its slots stayed in the caches, the queue would not show the load generator's limit for large payloads.
TEST_P(NullQueue, SlotsMatchTheWindowAndHoldCorrectResults) {
  const auto producer = queue->producer(0);
  const auto collector = queue->collector(0);
  EXPECT_TRUE(collector->poll(16).empty());
  std::set<const std::byte*> messages, results;
  for (std::size_t sent = 0; sent < kSlots; sent += 16) {
    ASSERT_EQ(producer->reserve(16).count, 16u);
    messages.insert(producer->reserve(16).base);
    producer->publish(16);
  }
  EXPECT_TRUE(producer->reserve(16).empty());
  for (std::size_t taken = 0; taken < kSlots; taken += 16) {
    const ConstMessages some = collector->poll(16);
    ASSERT_EQ(some.count, 16u);
    results.insert(some.base);
    // A comparison of wrong results would end at the first byte.
    std::array<std::uint64_t, 16> ids{};
    EXPECT_TRUE(workload->check(1, kPayload, some, ids.data()).right);
    collector->release(16);
  }
  EXPECT_EQ(messages.size(), kSlots / 16);
  EXPECT_EQ(results.size(), kSlots / 16);
  EXPECT_TRUE(collector->poll(16).empty());
  EXPECT_EQ(producer->reserve(16).count, 16u);
}

INSTANTIATE_TEST_SUITE_P(Of, NullQueue, testing::Values("echo", "scale", "vecadd"));
INSTANTIATE_TEST_SUITE_P(Null, CpuQueue, testing::ValuesIn(cases_for("null", "cpu")), case_name);
INSTANTIATE_TEST_SUITE_P(HostPolled, CpuQueue, testing::ValuesIn(thinned(cases_for("host_polled", "cpu"), 3)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(GpuRing, CpuQueue, testing::ValuesIn(thinned(cases_for("gpu_ring", "cpu"), 3)), case_name);

}  // namespace
}  // namespace feedrate::test
