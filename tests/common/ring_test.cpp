#include "common/ring/ring.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "common/threads/threads.hpp"
#include "tests/support/long.hpp"

namespace feedrate {
namespace {

/// A ring with room for `capacity` messages of 8 payload bytes.
struct Ring {
  explicit Ring(std::uint64_t capacity)
      : in(capacity * kStride),
        out(capacity * kStride),
        view(ring_at(cursors, in.data(), out.data(), kStride, kStride, capacity)) {}
  static constexpr std::uint32_t kStride = 32;
  RingCursors cursors{};
  std::vector<std::byte> in, out;
  RingView view;
};

TEST(Ring, FullRingHasNoRoomAndEmptyRingNoResults) {
  Ring ring(4);
  RingProducer producer(ring.view);
  RingServer server(ring.view);
  RingCollector collector(ring.view);
  EXPECT_EQ(server.waiting(), 0u);
  EXPECT_TRUE(collector.poll(8).empty());
  EXPECT_EQ(producer.reserve(10).count, 4u);
  producer.publish(4);
  EXPECT_TRUE(producer.reserve(1).empty());
  EXPECT_EQ(server.waiting(), 4u);
  server.take(3);
  server.complete(3);
  EXPECT_TRUE(producer.reserve(1).empty()) << "slots are freed by release, not by completion";
  EXPECT_EQ(collector.poll(8).count, 3u);
  collector.release(2);
  EXPECT_EQ(producer.reserve(10).count, 2u);
}

TEST(Ring, ReservationsNeverWrap) {
  Ring ring(8);
  RingProducer producer(ring.view);
  RingServer server(ring.view);
  RingCollector collector(ring.view);
  producer.publish(6);
  server.take(server.waiting());
  server.complete(6);
  collector.poll(8);
  collector.release(6);
  EXPECT_EQ(producer.reserve(8).count, 2u) << "a reservation must end at the last slot";
  producer.publish(2);
  EXPECT_EQ(producer.reserve(8).count, 6u) << "the next reservation must start at the first slot";
}

TEST(Ring, StopWhenDoneServesPublishedMessages) {
  Ring ring(8);
  RingProducer producer(ring.view);
  RingServer server(ring.view);
  producer.publish(3);
  request_stop(ring.view, kStopWhenDone);
  EXPECT_EQ(server.waiting(), 3u);
  EXPECT_FALSE(server.ended());
  server.take(3);
  EXPECT_EQ(server.waiting(), 0u);
  EXPECT_TRUE(server.ended());
}

TEST(Ring, StopNowEndsTheServerWhileMessagesWait) {
  Ring ring(8);
  RingProducer producer(ring.view);
  RingServer server(ring.view);
  producer.publish(3);
  request_stop(ring.view, kStopNow);
  server.waiting();
  EXPECT_TRUE(server.ended());
}

TEST(Ring, StopBitDoesNotChangeTheCount) {
  for (const std::uint64_t how : {kStopWhenDone, kStopNow}) {
    Ring ring(8);
    RingProducer producer(ring.view);
    RingServer server(ring.view);
    producer.publish(5);
    request_stop(ring.view, how);
    request_stop(ring.view, how);  // twice is harmless
    EXPECT_EQ(server.waiting(), 5u);
    EXPECT_EQ(ring.cursors.published.value & kCountMask, 5u);
  }
}

TEST(Ring, ServerMayTakeSeveralRunsBeforeCompletingOne) {
  Ring ring(8);
  RingProducer producer(ring.view);
  RingServer server(ring.view);
  RingCollector collector(ring.view);
  producer.publish(4);
  EXPECT_EQ(server.waiting(), 4u);
  server.take(1);
  server.take(2);
  EXPECT_EQ(server.waiting(), 1u);
  EXPECT_TRUE(collector.poll(8).empty()) << "messages were taken but not completed";
  server.complete(1);
  EXPECT_EQ(collector.poll(8).count, 1u);
}

TEST(Ring, ResultsStayUntilReleased) {
  Ring ring(4);
  RingProducer producer(ring.view);
  RingServer server(ring.view);
  RingCollector collector(ring.view);
  producer.publish(3);
  server.take(server.waiting());
  server.complete(3);
  const ConstMessages first = collector.poll(2);
  EXPECT_EQ(collector.poll(2).base, first.base) << "polling again must return the same results";
  collector.release(1);
  EXPECT_EQ(collector.poll(8).base, first.base + Ring::kStride);
  EXPECT_EQ(collector.poll(8).count, 2u);
}

/// Three threads exchange runs of random length over many laps; the server doubles each number. This test also runs
/// under ThreadSanitizer.
void run_laps(std::uint64_t capacity, std::uint64_t messages) {
  Ring ring(capacity);
  std::jthread producing([&] {
    RingProducer producer(ring.view);
    std::mt19937 random(1);
    Backoff backoff;
    for (std::uint64_t next = 0; next < messages;) {
      const Messages slots = producer.reserve(std::min<std::uint64_t>(1 + random() % 9, messages - next));
      if (slots.empty()) {
        backoff.wait();
        continue;
      }
      for (std::size_t i = 0; i < slots.count; ++i) slots.header(i).id = next++;
      producer.publish(slots.count);
    }
    request_stop(ring.view, kStopWhenDone);
  });
  std::jthread serving([&] {
    RingServer server(ring.view);
    std::mt19937 random(2);
    Backoff backoff;
    while (true) {
      const auto waiting = server.waiting();
      if (server.ended()) return;
      const auto n = ring.view.contiguous(server.taken(), std::min<std::uint64_t>(waiting, 1 + random() % 5));
      if (n == 0) {
        backoff.wait();
        continue;
      }
      for (std::uint64_t i = server.taken(); i < server.taken() + n; ++i) {
        reinterpret_cast<Header*>(ring.view.out_slot(i))->id = 2 * reinterpret_cast<Header*>(ring.view.in_slot(i))->id;
      }
      server.take(n);
      server.complete(n);
    }
  });
  RingCollector collector(ring.view);
  Backoff backoff;
  for (std::uint64_t expected = 0; expected < messages;) {
    const ConstMessages results = collector.poll(8);
    if (results.empty()) backoff.wait();
    for (std::size_t i = 0; i < results.count; ++i) ASSERT_EQ(results.header(i).id, 2 * expected++);
    collector.release(results.count);
  }
}

TEST(Ring, ThreeThreadsExchangeMessagesOverManyLaps) { run_laps(16, test::long_tests() ? 200'000 : 20'000); }
TEST(Ring, ThreeThreadsExchangeMessagesInTheSmallestRings) {
  run_laps(1, test::long_tests() ? 5'000 : 500);
  run_laps(2, test::long_tests() ? 10'000 : 1'000);
}

}  // namespace
}  // namespace feedrate
