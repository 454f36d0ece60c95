// Messages that fail, expire, arrive twice or have a low priority.
#include "tests/cli/delivery.hpp"

namespace feedrate::cli_test {
namespace {

class RedeliveryTest : public DeliveryTest {};
class OnceTest : public DeliveryTest {};
class PriorityTest : public DeliveryTest {};
class StreamTest : public DeliveryTest {};

TEST_P(RedeliveryTest, MessageDeferredByTheWorkloadIsRedelivered) {
  place_.use(with_additions());
  const auto worker = start({"--workload", "faulty", "--attempts", "3"});
  constexpr std::uint32_t kAgainDrill = 0xFA17'0002;
  push(encode(1, {kAgainDrill, 2, 0, 0}));  // succeeds at its third delivery
  push(encode(2, {kAgainDrill, 9, 0, 0}));  // does not succeed within three deliveries
  push(encode(3, {7, 7, 7, 7}));
  ASSERT_TRUE(await([&] { return results().size() == 3; })) << worker->err();
  auto found = results();
  EXPECT_EQ(found.find(1)->second.words, (std::vector<std::uint32_t>{kAgainDrill, 2, 0, 0}));
  EXPECT_EQ(found.find(2)->second.length, kFailed | kAgain);
  EXPECT_EQ(found.find(3)->second.words, (std::vector<std::uint32_t>{7, 7, 7, 7}));
  const auto dead = letters();
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0]["id"], "0000000000000002");
  EXPECT_EQ(dead[0]["attempts"], 3);
  const std::string history = dead[0]["history"];
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 2) << "the history must have three lines: " << history;
  EXPECT_TRUE(await([&] {
    return server_->integer({"HLEN", "t:history"}) == 0;
  })) << "the history of finished messages remains";
}

TEST_P(RedeliveryTest, DeadLettersAreShownRequeuedAndPurged) {
  auto worker = start({"--payload", "64"});
  push("garbage");
  push(encode(5, std::vector<std::uint32_t>(100, 1)));  // longer than the payload
  ASSERT_TRUE(await([&] { return letters().size() == 2; })) << worker->err();
  auto dead = letters();
  if (dead[0].contains("id")) std::swap(dead[0], dead[1]);  // a sorted set delivers them in another order
  EXPECT_EQ(dead[0]["task_hex"], "67617262616765");
  EXPECT_FALSE(dead[0].contains("id"));
  EXPECT_EQ(dead[1]["id"], "0000000000000005");
  EXPECT_EQ(dead[1]["payload_hex"].get<std::string>().size(), 800u)
      << "the full payload, not only the part that fits a slot";
  const std::string garbage = dead[0]["letter"], letter = dead[1]["letter"];
  const Outcome shown = dlq({"show", letter});
  EXPECT_NE(shown.out.find("400 bytes of payload"), std::string::npos) << shown.out;
  EXPECT_EQ(dlq({"requeue", garbage}).code, 1) << "the letter has no message to requeue";
  EXPECT_EQ(dlq({"show", "1-1"}).code, 2);
  EXPECT_EQ(dlq({"requeue"}).code, 2);
  worker->signal(SIGTERM);
  worker->wait();
  worker = start({"--payload", "1Ki"});
  EXPECT_EQ(dlq({"requeue", letter}).out, "requeued 1 dead letter\n");
  EXPECT_TRUE(await([&] {
    const auto found = results();
    return found.count(5) == 2;  // the failure and the new result
  })) << worker->err();
  EXPECT_EQ(dlq({"purge", "--all"}).out, "purged 1 dead letter\n");
  EXPECT_EQ(letters().size(), 0u);
}

TEST_P(RedeliveryTest, DeadLettersWithNonUtf8BytesAreListed) {
  server_->command({"XADD", "t:dead", "*", "m", "\xff\xfe", "error", "caf\xe9", "attempts", "1", "worker", "w\xfc",
                    "history", "1 w\xfc: \xff"});
  const Outcome listed = dlq({"list", "--json"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  const Json letter = Json::parse(listed.out);
  EXPECT_EQ(letter.at("error"), R"(caf\xe9)");
  EXPECT_EQ(letter.at("worker"), R"(w\xfc)");
  EXPECT_EQ(dlq({"show", letter.at("letter"), "--json"}).code, 0);
}

TEST_P(RedeliveryTest, ExpiredTaskIsNotServed) {
  const auto worker = start();
  const auto with_deadline = [](std::uint64_t id, std::uint64_t deadline_ms) {
    std::string task = encode(id, {41});
    task[12] = 1;  // version 1 has sixteen more bytes of header
    std::string extension(16, '\0');
    std::memcpy(extension.data(), &deadline_ms, 8);
    return task.insert(16, extension);
  };
  const auto now = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
  push(with_deadline(1, now - 1000));
  push(with_deadline(2, now + 60'000));
  std::string future = encode(3, {1});
  future[12] = 9;
  push(future);
  ASSERT_TRUE(await([&] { return results().size() == 3; })) << worker->err();
  const auto found = results();
  EXPECT_EQ(found.find(1)->second.length, kFailed | kExpired);
  EXPECT_EQ(found.find(2)->second.words, std::vector<std::uint32_t>{42});
  EXPECT_EQ(found.find(3)->second.length, kFailed | 7) << "the worker does not know this version";
}

TEST_P(RedeliveryTest, UncollectedResultsExpire) {
  const auto worker = start({"--results-expire", "0.3"});
  push(encode(1, {1}));
  ASSERT_TRUE(await([&] { return results().size() == 1; }));
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "t:results:0"}) == 0; }));
}

/// The key of a stream in use does not expire.
TEST_P(StreamTest, OldResultsDoNotAccumulate) {
  const auto worker = start({"--results-expire", "0.3"});
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t sent = 0;
  long long most = 0;
  while (std::chrono::steady_clock::now() - begin < Seconds(1.5)) {
    for (int i = 0; i < 20; ++i) push(encode(sent++, {1}));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    most = std::max(most, server_->integer({"XLEN", "t:results:0"}));
  }
  EXPECT_GT(most, 100) << "recent results must be kept";
  EXPECT_LT(most, static_cast<long long>(sent) / 2) << "of " << sent;
}

TEST_P(OnceTest, IdIsAnsweredOnceWithinTheWindow) {
  const auto worker = start({"--once", "60"});
  for (const std::uint64_t id : {1, 2, 1, 1, 3}) {
    push(padded(encode(id, {7})) + encode(id, {8}));  // different elements, because a sorted set stores equal ones once
    push(encode(id, {9}));
  }
  ASSERT_TRUE(await([&] { return results().size() >= 3 && server_->integer({"EXISTS", "t:tasks"}) == 0; }));
  std::this_thread::sleep_for(Seconds(0.2));
  const auto found = results();
  EXPECT_EQ(found.size(), 3u) << "each id must have exactly one result";
  // The same holds while workers are killed.
  Ledger ledger(server_->socket(), GetParam());
  auto other = start({"--once", "60"});
  ledger.start_sending(kPerSecond);
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(Seconds(0.1));
    other->signal(SIGKILL);
    other->wait();
    other = start({"--once", "60"});
  }
  ledger.stop_sending();
  ledger.settle();
  EXPECT_EQ(ledger.tally().duplicated, 0u);
  EXPECT_LE(ledger.tally().lost, 4u) << "only ids 1 to 3, which were answered above";
}

TEST_P(OnceTest, ShorterWindowForgetsIdsAndRotates) {
  auto worker = start({"--once", "60"});
  push(encode(1, {1}));
  ASSERT_TRUE(await([&] { return results().size() == 1; }));
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0);
  worker = start({"--once", "0.3"});
  for (std::uint32_t again = 2; again < 5; ++again) {  // each in a separate window
    if (again != 2) std::this_thread::sleep_for(Seconds(0.7));
    push(encode(1, {again}));
    EXPECT_TRUE(await([&] { return results().size() == again; })) << again;
  }
}

TEST_P(PriorityTest, LowPriorityTaskIsOvertakenOnlyByEarlierScores) {
  // The worker always lags behind: important tasks keep arriving, each with its time minus one second as its score.
  const auto now_us = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto add = [&](std::uint64_t id, auto score) {
    server_->command({"ZADD", "t:tasks", std::to_string(score), encode(id, std::vector<std::uint32_t>(1024, 1))});
  };
  const auto worker =
      start({"--workload", "fma_chain", "--flops-per-byte", "8192", "--payload", "4Ki", "--batch", "1"});
  for (std::uint64_t id = 100; id < 200; ++id) add(id, now_us() - 1'000'000);
  const auto unimportant = now_us();
  add(1, unimportant);
  std::uint64_t next = 1000;
  std::uint64_t first_behind = 0;  // first important id with a later score than the unimportant task
  EXPECT_TRUE(await([&] {
    while (server_->integer({"ZCARD", "t:tasks"}) < 100) {
      const auto score = now_us() - 1'000'000;
      if (score > unimportant && first_behind == 0) first_behind = next;
      add(next++, score);
    }
    return results().count(1) != 0;
  })) << "the unimportant task was never served";
  ASSERT_NE(first_behind, 0u) << "no important task had a later score than the unimportant one";
  EXPECT_GT(next, 1000u) << "the worker never lagged behind";
  const auto found = results();
  EXPECT_LE(std::distance(found.lower_bound(first_behind), found.end()), 3)
      << "at most the tasks that the worker already held";
}

INSTANTIATE_TEST_SUITE_P(Queues, RedeliveryTest, kAllQueues, kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, OnceTest, testing::Values("redis_reliable", "redis_priority"), kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, PriorityTest, testing::Values("redis_priority"), kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, StreamTest, testing::Values("redis_stream"), kQueueNames);

}  // namespace
}  // namespace feedrate::cli_test
