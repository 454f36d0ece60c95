#include "tests/support/cells.hpp"
#include "tests/support/long.hpp"
#include "variants/feeding/queue.hpp"

/// The example queue in variants/README.md (handoff_queue.cpp, in this folder) must keep working.
namespace feedrate::test {
namespace {

class ExampleQueue : public testing::TestWithParam<Case> {};

TEST_P(ExampleQueue, ReturnsEveryMessageOnceAndCorrect) {
  Session session("feeding", "cpu", 0, {}, "test", brief(GetParam().messages));
  run_case(session, GetParam());
}

// Lone messages, several producers, every transfer and workload: the same cases as for Feedrate's own queues.
INSTANTIATE_TEST_SUITE_P(Handoff, ExampleQueue, testing::ValuesIn(thinned(cases_for("handoff", "cpu"), 8)), case_name);

TEST(Example, RestartsInOneSession) {
  Session session("feeding", "cpu", 0, {}, "test", brief(2'000));
  Point point;
  point.queue = "handoff";
  point.producers = 2;
  for (unsigned repetition = 0; repetition < 5; ++repetition) expect_clean(run_cell(session, point, repetition));
}

TEST(Example, RowReportsItsCost) {
  Point point;
  point.queue = "handoff";
  point.producers = 3;
  const Json cost = run_cell(point, brief(1'000))["cost"];
  EXPECT_EQ(cost["host_threads"], 3 + 2 * 3) << "a worker, a producer and a collector thread per producer";
  EXPECT_EQ(cost["delivery"], "exactly once in process");
}

TEST(Example, DrainServesAllPublishedMessagesBeforeStopping) {
  const auto device = open_device("cpu");
  const auto workload = Workloads::instance().get("--workload", "echo").make({});
  Point asked;
  asked.queue = "handoff";
  asked.device = "cpu";
  asked.window = 64;
  asked.batch = 16;
  const Point point = resolve(asked, *device).point;
  const auto queue = Queues::instance().get("--queue", point.queue).make({point, *device, *workload, {}, false});
  const auto producer = queue->producer(0);
  const auto collector = queue->collector(0);
  std::uint64_t sent = 0;
  for (Messages room = producer->reserve(point.batch); !room.empty(); room = producer->reserve(point.batch)) {
    workload->fill(1, message_id(0, sent), point.payload, room);
    producer->publish(room.count);
    sent += room.count;
  }
  EXPECT_EQ(sent, 64u) << "a full queue accepts no more";
  queue->start();
  queue->stop(true);
  queue->stop(false);
  std::uint64_t received = 0;
  for (ConstMessages results = collector->poll(5); !results.empty(); results = collector->poll(5)) {
    for (std::size_t i = 0; i < results.count; ++i, ++received) {
      EXPECT_TRUE(workload->matches(1, message_id(0, received), point.payload, results.from(i)));
    }
    collector->release(results.count);
  }
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace feedrate::test
