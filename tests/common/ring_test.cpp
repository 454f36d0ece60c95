#include "common/ring/ring.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "common/threads.hpp"

namespace feedrate {
namespace {

/// A ring with room for `capacity` messages of 8 payload bytes, server and collector included.
struct Ring {
  explicit Ring(std::uint64_t capacity, bool flagged = false)
      : in(capacity * kStride << flagged), out(capacity * kStride << flagged), view{&cursors,         in.data(),
                                                                                    out.data(),       kStride,
                                                                                    kStride,          capacity,
                                                                                    flagged ? 1u : 0u} {}
  static constexpr std::uint32_t kStride = 32;
  RingCursors cursors{};
  std::vector<std::byte> in, out;
  RingView view;
};

TEST(Ring, FullPushesBackAndEmptyHasNothing) {
  Ring ring(4);
  RingProducer producer(ring.view, 16);
  RingServer server(ring.view);
  RingCollector collector(ring.view, 8);
  EXPECT_EQ(server.waiting(), 0u);
  EXPECT_TRUE(collector.poll(8).empty());
  EXPECT_EQ(producer.reserve(10).count, 4u);
  producer.publish(4);
  EXPECT_TRUE(producer.reserve(1).empty());
  EXPECT_EQ(server.waiting(), 4u);
  server.take(3);
  server.complete(3);
  EXPECT_TRUE(producer.reserve(1).empty()) << "room comes with release, not with completion";
  EXPECT_EQ(collector.poll(8).count, 3u);
  collector.release(2);
  EXPECT_EQ(producer.reserve(10).count, 2u);
}

TEST(Ring, ReservationsNeverWrap) {
  Ring ring(8);
  RingProducer producer(ring.view, 16);
  RingServer server(ring.view);
  RingCollector collector(ring.view, 8);
  producer.publish(6);
  server.take(server.waiting());
  server.complete(6);
  collector.poll(8);
  collector.release(6);
  EXPECT_EQ(producer.reserve(8).count, 2u) << "to the end of the slots";
  producer.publish(2);
  EXPECT_EQ(producer.reserve(8).count, 6u) << "then from their beginning";
}

TEST(Ring, StopWhenDoneServesWhatIsThere) {
  Ring ring(8);
  RingProducer producer(ring.view, 16);
  RingServer server(ring.view);
  producer.publish(3);
  request_stop(ring.view, kStopWhenDone);
  EXPECT_EQ(server.waiting(), 3u);
  EXPECT_FALSE(server.ended());
  server.take(3);
  EXPECT_EQ(server.waiting(), 0u);
  EXPECT_TRUE(server.ended());
}

TEST(Ring, StopNowEndsWithMessagesWaiting) {
  Ring ring(8);
  RingProducer producer(ring.view, 16);
  RingServer server(ring.view);
  producer.publish(3);
  request_stop(ring.view, kStopNow);
  server.waiting();
  EXPECT_TRUE(server.ended());
}

TEST(Ring, AFlaggedResultIsThereWhenItsLastWordIs) {
  Ring ring(4, true);
  RingCollector collector(ring.view, 4);
  std::vector<std::byte> result(Ring::kStride, std::byte{0x5A});
  store_flagged(ring.view.out_slot(0), 0, result.data(), Ring::kStride);
  auto* last = reinterpret_cast<std::uint64_t*>(ring.out.data()) + Ring::kStride / 4 - 1;
  const std::uint64_t whole = std::exchange(*last, 0);
  EXPECT_TRUE(collector.poll(4).empty()) << "torn";
  *last = whole;
  ASSERT_EQ(collector.poll(4).count, 1u);
  EXPECT_EQ(collector.poll(4).base[Ring::kStride - 1], std::byte{0x5A});
  collector.release(1);
  store_flagged(ring.view.out_slot(0), 0, result.data(), Ring::kStride);  // the flag of an earlier lap
  EXPECT_TRUE(collector.poll(4).empty());
}

/// Three threads, random run lengths, many laps; the server doubles each number. ThreadSanitizer watches.
void run_laps(bool flagged) {
  constexpr std::uint64_t kMessages = 200'000;
  Ring ring(16, flagged);
  std::jthread producing([&] {
    RingProducer producer(ring.view, 16);
    std::mt19937 random(1);
    Backoff backoff;
    for (std::uint64_t next = 0; next < kMessages;) {
      const Messages slots = producer.reserve(std::min<std::uint64_t>(1 + random() % 9, kMessages - next));
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
    std::vector<std::byte> in(Ring::kStride), out(Ring::kStride);
    while (true) {
      const auto waiting = server.waiting();
      if (server.ended()) return;
      const auto n = ring.view.contiguous(server.taken(), std::min<std::uint64_t>(waiting, 1 + random() % 5));
      if (n == 0) {
        backoff.wait();
        continue;
      }
      for (std::uint64_t i = server.taken(); i < server.taken() + n; ++i) {
        if (flagged) {
          ASSERT_TRUE(load_flagged(ring.view.in_slot(i), i, in.data(), Ring::kStride));
          reinterpret_cast<Header*>(out.data())->id = 2 * reinterpret_cast<Header*>(in.data())->id;
          store_flagged(ring.view.out_slot(i), i, out.data(), Ring::kStride);
        } else {
          reinterpret_cast<Header*>(ring.view.out_slot(i))->id =
              2 * reinterpret_cast<Header*>(ring.view.in_slot(i))->id;
        }
      }
      server.take(n);
      server.complete(n);
    }
  });
  RingCollector collector(ring.view, 8);
  Backoff backoff;
  for (std::uint64_t expected = 0; expected < kMessages;) {
    const ConstMessages results = collector.poll(8);
    if (results.empty()) backoff.wait();
    for (std::size_t i = 0; i < results.count; ++i) ASSERT_EQ(results.header(i).id, 2 * expected++);
    collector.release(results.count);
  }
}

TEST(Ring, ThreeThreadsManyLaps) { run_laps(false); }
TEST(Ring, ThreeThreadsManyLapsFlagged) { run_laps(true); }

}  // namespace
}  // namespace feedrate
