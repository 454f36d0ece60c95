#include "tests/support/cells.hpp"
#include "variants/queue.hpp"

namespace feedrate::test {
namespace {

class CpuQueue : public testing::TestWithParam<Case> {};

TEST_P(CpuQueue, BringsEveryMessageBackOnceAndRight) {
  Session session("feeding", "cpu", 0, {}, "test", brief(GetParam().messages));
  expect_clean(run_cell(session, GetParam().point));
}

// It would not be the driver's limit if its slots were as many as the window, and missed the caches.
TEST(NullQueue, UsesOneBatchOfSlotsAgainAndAgain) {
  Session session("feeding", "cpu", 0, {}, "test", brief());
  Point point;
  point.queue = "null";
  point.window = 1024;
  point.batch = 16;
  const Resolved resolved = resolve(point, session.device());
  const auto workload = Workloads::instance().get("--workload", point.workload).make({});
  const auto& entry = Queues::instance().get("--queue", "null");
  const auto queue = entry.make({.point = resolved.point, .device = session.device(), .workload = *workload});
  const auto producer = queue->producer(0);
  const auto collector = queue->collector(0);
  EXPECT_TRUE(collector->poll(16).empty());
  const std::byte* const base = producer->reserve(16).base;
  for (std::size_t sent = 0; sent < 1024; sent += 16) {  // as many as fit without a result being taken
    ASSERT_EQ(producer->reserve(100).count, 16u);
    EXPECT_EQ(producer->reserve(16).base, base);
    producer->publish(16);
  }
  EXPECT_TRUE(producer->reserve(16).empty());
  const std::byte* const results = collector->poll(16).base;
  for (std::size_t taken = 0; taken < 1024; taken += 16) {
    ASSERT_EQ(collector->poll(100).count, 16u);
    EXPECT_EQ(collector->poll(16).base, results);
    collector->release(16);
  }
  EXPECT_TRUE(collector->poll(16).empty());
  EXPECT_EQ(producer->reserve(16).count, 16u);
}

INSTANTIATE_TEST_SUITE_P(Null, CpuQueue, testing::ValuesIn(cases_for("null", "cpu")), case_name);
INSTANTIATE_TEST_SUITE_P(HostPolled, CpuQueue, testing::ValuesIn(cases_for("host_polled", "cpu")), case_name);
INSTANTIATE_TEST_SUITE_P(GpuRing, CpuQueue, testing::ValuesIn(cases_for("gpu_ring", "cpu")), case_name);

}  // namespace
}  // namespace feedrate::test
