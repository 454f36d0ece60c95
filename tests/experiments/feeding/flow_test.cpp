#include "experiments/feeding/flow.hpp"

#include <gtest/gtest.h>

#include "tests/support/given_queue.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kPayload = 64, kResults = 256, kStride = stride_of(kPayload);

/// Results of a pass in lane order: four lanes get runs of `run` ids in turn.
class Collecting : public testing::TestWithParam<std::size_t> {
 protected:
  Collecting() {
    for (std::size_t i = 0; i < kResults; ++i) make(i, id_of(i));
  }
  std::uint64_t id_of(std::size_t place) const {
    const std::size_t run = GetParam(), lanes = 4, lane = place / (kResults / lanes), at = place % (kResults / lanes);
    return message_id(0, (at / run * lanes + lane) * run + at % run);
  }
  /// Stores the result of message `id` in slot `place`.
  void make(std::size_t place, std::uint64_t id) {
    std::vector<std::byte> message(kStride);
    workload->fill(1, id, kPayload, {message.data(), kStride, 1});
    workload->run_on_cpu({message.data(), memory.data() + place * kStride, kStride, kStride, 1});
  }
  Header& header(std::size_t place) { return *reinterpret_cast<Header*>(memory.data() + place * kStride); }
  /// `lost`: number of messages that never return. They do not count as sent, since the collector would wait for them
  /// forever.
  Counts collected(std::uint64_t lost = 0, std::size_t most = 256) {
    Point point;
    point.payload = kPayload, point.batch = 256, point.window = window;
    test::GivenQueue queue({memory.data(), kStride, kResults}, most);
    Flow flow(0, point, queue);
    flow.sent = kResults - lost;
    flow.all_sent = true;
    const std::atomic<bool> abort{false};
    collect(flow, {point, *workload, 1, true}, pass, abort);
    EXPECT_EQ(flow.latency.samples(), flow.counts.received - untimed);
    return flow.counts;
  }

  Pass pass{.messages = kResults};
  std::size_t window = kResults;
  std::uint64_t untimed = 0;

  std::unique_ptr<Workload> workload = Workloads::instance().get("--workload", "echo").make({});
  std::vector<std::byte> memory = std::vector<std::byte>(kResults * kStride);
};

TEST_P(Collecting, CorrectResultsAreAcceptedInAnyBatchSize) {
  for (const std::size_t most : {1, 5, 8, 100, 256}) {
    const Counts counts = collected(0, most);
    EXPECT_EQ(counts.received, kResults);
    EXPECT_EQ(wrong_results(counts, Delivery::exactly_once), "");
  }
}

TEST_P(Collecting, WrongResultsAmongCorrectOnesAreCounted) {
  for (const std::size_t place : {0u, 1u, 77u, 255u}) {
    memory[place * kStride + sizeof(Header) + 5] ^= std::byte{1};
    const Counts counts = collected();
    EXPECT_EQ(counts.received, kResults);
    EXPECT_EQ(counts.corrupted, 1u);
    EXPECT_EQ(counts.duplicated, 0u);
    make(place, id_of(place));
  }
  std::swap(header(10).id, header(11).id);  // each with the other's payload
  EXPECT_EQ(collected().corrupted, 2u);
}

TEST_P(Collecting, DuplicatedResultIsCounted) {
  make(100, id_of(50));  // replaces its own result
  const Counts counts = collected(1);
  EXPECT_EQ(counts.received, kResults - 1);
  EXPECT_EQ(counts.duplicated, 1u);
  EXPECT_EQ(counts.corrupted, 0u);
}

TEST_P(Collecting, IdsThatWereNeverSentAreCounted) {
  for (const std::uint64_t id : {message_id(1, 3), message_id(0, 1'000'000), ~std::uint64_t{0}}) {
    make(100, id);
    const Counts counts = collected(1);
    EXPECT_EQ(counts.received, kResults - 1);
    EXPECT_EQ(counts.corrupted, 1u);
    EXPECT_EQ(counts.duplicated, 0u);
  }
}

TEST_P(Collecting, FirstWindowIsNotTimed) {
  pass = {.seconds = 1};
  window = untimed = 100;
  EXPECT_EQ(collected().received, kResults);
}

INSTANTIATE_TEST_SUITE_P(InRunsOf, Collecting, testing::Values(1, 4, 64));

}  // namespace
}  // namespace feedrate
