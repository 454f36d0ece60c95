// Delivery guarantees of each queue under faults, with real servers, real workers and a ledger of every id.
#include <sys/resource.h>

#include "tests/cli/delivery.hpp"
#include "tests/cli/proxy.hpp"

namespace feedrate::cli_test {
namespace {

/// Queues that deliver at least once.
class AtLeastOnceTest : public DeliveryTest {};

class PubsubTest : public DeliveryTest {};

/// Faults of the network. A short run covers the two ways of waiting for tasks: a subscription and a blocking command.
/// The table of guarantees covers every queue.
class NetworkDeliveryTest : public DeliveryTest {};
std::vector<std::string> queues_behind_a_network() {
  if (!test::long_tests() && std::getenv("FEEDRATE_FAULTS") == nullptr) return {"redis_pubsub", "redis_reliable"};
  return {"redis_list", "redis_priority", "redis_pubsub", "redis_reliable", "redis_stream"};
}

/// Uses tasks so large that redis_reliable claims them with LMOVE.
class LargeTasksTest : public DeliveryTest {
 protected:
  LargeTasksTest() {
    words_ = 252;  // 1024 bytes with the header, because the ledger does not pad
    options_ = {"--payload", "1Ki"};
  }
};

TEST_P(DeliveryTest, KilledWorkersKeepTheGuarantee) { kill_workers_at_random(); }

TEST_P(DeliveryTest, WorkerStoppedBeyondItsLeaseKeepsTheGuarantee) { stop_a_worker_beyond_its_lease(); }

TEST_P(DeliveryTest, CutConnectionsKeepTheGuarantee) {
  const auto one = start(), two = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond);
  for (int i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(Seconds(0.1));
    kill_connections_of_workers(ledger);
  }
  ledger.stop_sending();
  const double recovery = ledger.settle();
  judge("connections cut", ledger.tally(), recovery);
  EXPECT_FALSE(one->ended()) << one->err();
  EXPECT_FALSE(two->ended()) << two->err();
}

TEST_P(DeliveryTest, KilledRunsDoNotDisturbLaterRuns) {
  const auto worker = start();
  const Words load{"run",    "--external-worker", "--queue",      GetParam(),    "--device",
                   "cpu",    "--redis",           server_->url(), "--prefix",    "t",
                   "--json", "--window",          "64",           "--producers", "2"};
  const bool stream = GetParam() == "redis_stream";
  const char* const count = GetParam() == "redis_priority" ? "ZCARD" : "LLEN";
  for (int kills = 0; kills < 2; ++kills) {
    Words words = load;
    words.insert(words.end(), {"--seconds", "60", "--floor-rounds", "0"});
    const auto run = place_.start(words);
    ASSERT_TRUE(await([&] { return run->ended() || !results().empty(); }));
    ASSERT_FALSE(run->ended()) << run->err();
    run->signal(SIGKILL);
    run->wait();
    // The worker answers the tasks already sent. Their results are never collected: they expire, and until then no
    // other run counts them as its own.
    EXPECT_TRUE(await([&] { return stream || server_->integer({count, "t:tasks"}) == 0; }));
    push(encode(id_of(7, 0), {1}));  // after all of these tasks, so that its result arrives last
    EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "t:results:7"}) == 1; })) << worker->err();
    server_->command({"DEL", "t:results:7"});
    for (const std::string list : {"t:results:0", "t:results:1"}) {
      if (server_->integer({"EXISTS", list}) == 0) continue;
      EXPECT_GT(server_->integer({"TTL", list}), 0) << list;
      server_->command({"DEL", list});
    }
  }
  Words words = load;
  words.insert(words.end(), {"--messages", "500", "--warmup", "0", "--floor-rounds", "0"});
  const Outcome next = place_.run(words);
  ASSERT_EQ(next.code, 0) << next.out << next.err << worker->err();
  for (const Json& row : measured_in(next.out)) {
    if (row.at("kind") == "cell") expect_clean(row);
  }
  EXPECT_FALSE(worker->ended()) << worker->err();
}

TEST_P(NetworkDeliveryTest, SlowStalledAndCutNetworkKeepsTheGuarantee) {
  Proxy network(server_->socket());
  const auto through = start_at(network.url()), beside = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond / 4);
  network.delay(0.02);
  std::this_thread::sleep_for(Seconds(0.3));
  network.delay(0);
  network.cut();
  std::this_thread::sleep_for(Seconds(0.3));
  network.stall();  // half open: neither end is notified that the connection is gone
  std::this_thread::sleep_for(Seconds(0.3));
  ledger.stop_sending();
  const double recovery = ledger.settle();
  judge("network slow, cut, half open", ledger.tally(), recovery);
  EXPECT_TRUE(await([&] { return through->err().find("no answer within 5 s") != std::string::npos; }))
      << "the worker still waits: " << through->err();
  // Then it serves again, as the only worker.
  beside->signal(SIGTERM);
  EXPECT_EQ(beside->wait(), 0);
  push(encode(id_of(1, 0), {1}));
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "t:results:1"}) == 1; })) << through->err();
  EXPECT_FALSE(through->ended()) << through->err();
}

// The test closes only connections that await no reply, as a server's `timeout`, a proxy or a firewall does.
TEST_P(DeliveryTest, ClosedIdleConnectionsLoseNothing) {
  const auto worker = start();
  for (std::uint64_t n = 0; n < 3; ++n) {
    push(encode(id_of(0, n), {1, 2}));
    EXPECT_TRUE(await([&] { return results().size() == n + 1; })) << n << worker->err();
    std::this_thread::sleep_for(Seconds(0.1));
    EXPECT_GE(close_idle_connections(0), 1) << "no connection was closed, so the test proves nothing";
  }
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0) << worker->err();
}

TEST_P(PubsubTest, ClosedSubscriptionsAreRenewedWithoutAWarning) {
  const auto worker = start();
  for (std::uint64_t n = 0; n < 3; ++n) {
    EXPECT_TRUE(await([&] { return server_->integer({"CLIENT", "KILL", "TYPE", "pubsub"}) >= 1; })) << n;
    push(encode(id_of(0, n), {1, 2}));
    EXPECT_TRUE(await([&] { return results().size() == n + 1; })) << n << worker->err();
  }
  EXPECT_EQ(worker->err().find("retrying in"), std::string::npos) << worker->err();
}

TEST_P(DeliveryTest, BenchmarkWithPausesSurvivesClosedIdleConnections) {
  const auto run = place_.start(
      {"run",    "--queue",  GetParam(), "--device",       "cpu",    "--redis",    server_->url(), "--arrivals",
       "bursts", "--rate",   "300",      "--burst-us",     "100000", "--pause-us", "2000000",      "--seconds",
       "2.2",    "--warmup", "0",        "--floor-rounds", "0",      "--json"});
  int closed = 0;
  while (!run->ended()) {
    std::this_thread::sleep_for(Seconds(0.1));
    closed += close_idle_connections(1);
  }
  EXPECT_EQ(run->wait(), 0) << run->err();
  EXPECT_GE(closed, 1) << "no connection was closed, so the test proves nothing";
  const Json row = rows_of(run->out()).back();
  EXPECT_NE(row.at("status"), "failed") << row.at("reason");
  EXPECT_EQ(row.at("details").at("counts").at("lost"), 0);
}

TEST_P(DeliveryTest, ServersConnectionLimitIsQuoted) {
  server_->command({"CONFIG", "SET", "maxclients", "1"});
  const Outcome outcome = place_.run({"worker", "--queue", GetParam(), "--device", "cpu", "--redis", server_->url()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("max number of clients"), std::string::npos) << outcome.err;
}

TEST_P(DeliveryTest, WorkersWaitWhileTheServerIsFull) { fill_the_server_for_a_second(); }

TEST_P(LargeTasksTest, KilledWorkersKeepTheGuarantee) {
  kill_workers_at_random();
  const Reply calls = server_->command({"INFO", "commandstats"});
  EXPECT_NE(std::string(calls->str, calls->len).find("cmdstat_lmove:"), std::string::npos)
      << "LMOVE was not used, so the test proves nothing";
}
TEST_P(LargeTasksTest, WorkerStoppedBeyondItsLeaseKeepsTheGuarantee) { stop_a_worker_beyond_its_lease(); }
TEST_P(LargeTasksTest, WorkersWaitWhileTheServerIsFull) { fill_the_server_for_a_second(); }

TEST_P(AtLeastOnceTest, TasksOfAKilledWorkerAreServedAfterItsLease) {
  constexpr std::uint64_t kTasks = 16;
  const Words slow{"--workload", "fma_chain", "--flops-per-byte", "8192", "--payload", "4Ki", "--batch", "8"};
  const auto push_from = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < kTasks; ++i) push(encode(first + i, std::vector<std::uint32_t>(1024, 0)));
  };
  // Seconds until this many different tasks have a result.
  const auto answered = [&](std::size_t tasks) {
    const auto begin = std::chrono::steady_clock::now();
    std::set<std::uint64_t> seen;
    EXPECT_TRUE(await([&] {
      for (const auto& [id, message] : results()) seen.insert(id);
      return seen.size() == tasks;
    })) << seen.size();
    return Seconds(std::chrono::steady_clock::now() - begin).count();
  };
  const auto held = start(slow);
  push_from(0);
  ASSERT_TRUE(await([&] { return !results().empty(); }));
  const auto other = start(slow);
  held->signal(SIGKILL);
  held->wait();
  const double seconds = answered(kTasks);
  // The duration of the work depends on the machine and its other load. Therefore the remaining worker does the same
  // amount of work again, without having to wait for a lease.
  push_from(kTasks);
  const double work = answered(2 * kTasks);
  // The held tasks are served within the lease plus one second, plus the time for the work itself.
  EXPECT_LT(seconds, kLease + 1 + 2 * work);
  RecordProperty("seconds", std::to_string(seconds));
  RecordProperty("work", std::to_string(work));
}

// With `appendfsync everysec` a server may lose writes that it acknowledged in its last seconds, so there is no
// guarantee.
TEST_P(AtLeastOnceTest, KilledServerWithSyncedLogLosesNothing) {
  server_.emplace(Words{"--appendonly", "yes", "--appendfsync", "always"});
  const auto one = start(), two = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond / 4);
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(Seconds(0.2));
    server_->kill_and_start();
  }
  std::this_thread::sleep_for(Seconds(0.2));
  ledger.stop_sending();
  const double recovery = ledger.settle();
  judge("server killed, AOF always", ledger.tally(), recovery);
  EXPECT_FALSE(one->ended()) << one->err();
  EXPECT_FALSE(two->ended()) << two->err();
}

TEST_P(AtLeastOnceTest, WorkersWaitWhileTheServersDiskIsFull) {
  ::signal(SIGXFSZ, SIG_IGN);  // inherited by the server: a write beyond the limit fails as on a full disk
  server_.emplace(Words{"--appendonly", "yes", "--appendfsync", "everysec"});
  ::signal(SIGXFSZ, SIG_DFL);
  const auto one = start(), two = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond / 4);
  std::this_thread::sleep_for(Seconds(0.3));
  const auto limit_files = [&](rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    ASSERT_EQ(prlimit(server_->process().id(), RLIMIT_FSIZE, &limit, nullptr), 0);
  };
  limit_files(64 << 10);  // below the current size of the append-only file
  const auto rejects = [&] {
    const Reply reply = server_->command({"SET", "probe", "1"});
    return reply && reply->type == REDIS_REPLY_ERROR && std::string(reply->str).starts_with("MISCONF");
  };
  EXPECT_TRUE(await(rejects)) << "the server still accepts writes";
  std::this_thread::sleep_for(Seconds(0.2));
  limit_files(RLIM_INFINITY);
  EXPECT_TRUE(await([&] { return !rejects(); }));
  std::this_thread::sleep_for(Seconds(0.1));
  ledger.stop_sending();
  const double recovery = ledger.settle();
  judge("disk of the server full, AOF everysec", ledger.tally(), recovery);
  EXPECT_FALSE(one->ended()) << one->err();
  EXPECT_FALSE(two->ended()) << two->err();
}

TEST_P(AtLeastOnceTest, RestoredRightsLeaveNoDeadLetters) {
  constexpr std::uint64_t kTasks = 8;
  const std::string command = GetParam() == "redis_stream" ? "xadd" : "lpush";
  for (std::uint64_t n = 0; n < kTasks; ++n) push(encode(id_of(0, n), {1, 2}));
  // The worker may claim tasks but not answer them.
  server_->command({"ACL", "SETUSER", "default", "-" + command});
  const auto worker = start({"--batch", "2", "--attempts", "2"});
  EXPECT_TRUE(await([&] {
    const std::string log = worker->err();
    std::size_t refusals = 0;
    for (auto at = log.find("NOPERM"); at != log.npos; at = log.find("NOPERM", at + 1)) ++refusals;
    return refusals >= 4;
  })) << worker->err();
  server_->command({"ACL", "SETUSER", "default", "+" + command});
  EXPECT_TRUE(await([&] { return results().size() >= kTasks; })) << worker->err();
  EXPECT_EQ(letters().size(), 0u);
}

TEST_P(AtLeastOnceTest, ExitedWorkersLeaveNoKeys) {
  for (int i = 0; i < 3; ++i) {
    const auto worker = start();
    push(encode(static_cast<std::uint64_t>(i), {1}));
    EXPECT_TRUE(await([&] { return results().size() == static_cast<std::size_t>(i) + 1; }));
    worker->signal(i == 1 ? SIGKILL : SIGTERM);
    worker->wait();
  }
  const auto last = start();
  const auto consumers = [&] {
    const Reply reply = server_->command({"XINFO", "CONSUMERS", "t:tasks", "feedrate"});
    return GetParam() == "redis_stream" && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 1;
  };
  // A worker that has only just started has not read yet and is therefore not a consumer.
  const auto cards = [&](const char* key) { return server_->integer({"ZCARD", key}); };
  EXPECT_TRUE(await([&] { return cards("t:leases") == 1 && cards("t:dead_workers") == 0 && consumers() <= 1; }))
      << cards("t:leases") << " leases, " << cards("t:dead_workers") << " dead_workers, " << consumers()
      << " consumers";
  for (const char* pattern : {"t:processing:*", "t:alone:*", "t:suspects", "t:history"}) {
    EXPECT_EQ(server_->command({"KEYS", pattern})->elements, 0u) << pattern;
  }
}

TEST_P(AtLeastOnceTest, PoisonedMessagesFailAloneAndTheRestOfTheirBatchSucceeds) {
  constexpr std::uint32_t kCrash = 0xFA17'0003;
  const std::set<std::uint64_t> poisoned{77, 130, 131};
  for (std::uint64_t i = 0; i < 200; ++i) push(encode(i, {poisoned.contains(i) ? kCrash : 5u, 6, 7, 8}));
  place_.use(with_additions());
  const Words faulty{"--workload", "faulty", "--attempts", "3", "--supervise", "--batch", "64"};
  const auto one = start(faulty), two = start(faulty);
  std::set<std::uint64_t> ids;
  EXPECT_TRUE(await([&] {
    for (const auto& [id, message] : results()) ids.insert(id);
    return ids.size() == 200;
  })) << ids.size()
      << one->err() << two->err();
  for (const auto& [id, message] : results()) {
    if (poisoned.contains(id)) {
      EXPECT_EQ(message.length, kFailed | kWorkerDied);
    } else {
      EXPECT_EQ(message.words, (std::vector<std::uint32_t>{5, 6, 7, 8})) << id;
    }
  }
  const auto dead = letters();
  EXPECT_EQ(dead.size(), poisoned.size());
  for (const Json& letter : dead) EXPECT_EQ(letter["attempts"], 3) << letter;
  // On a GPU only the context breaks, and the process exits.
  const char* end = device_ == "cpu" ? "by signal 11" : "with exit code 1";
  EXPECT_NE((one->err() + two->err()).find(end), std::string::npos) << one->err() << two->err();
  for (const auto& worker : {one.get(), two.get()}) {
    worker->signal(SIGTERM);
    EXPECT_EQ(worker->wait(), 0) << worker->err();
  }
}

TEST_P(AtLeastOnceTest, OrderlyExitBlamesNoMessage) {
  const Words slow{"--workload", "fma_chain", "--flops-per-byte", "2048", "--payload", "4Ki",
                   "--batch",    "16",        "--attempts",       "2",    "--name",    "w"};
  for (std::uint64_t i = 0; i < 60; ++i) push(encode(i, std::vector<std::uint32_t>(1024, 0)));
  auto worker = start(slow);
  ASSERT_TRUE(await([&] { return !results().empty(); }));
  worker->signal(SIGKILL);
  worker->wait();
  // The tasks that it held were delivered once; a second failed delivery would be the last.
  const auto answered = [&] {
    std::set<std::uint64_t> ids;
    for (const auto& [id, message] : results()) ids.insert(id);
    return ids.size();
  };
  for (int i = 0; i < 6 && answered() < 60; ++i) {
    worker = start(slow);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 15 * i));
    worker->signal(SIGTERM);
    EXPECT_EQ(worker->wait(), 0) << worker->err();
  }
  worker = start(slow);
  EXPECT_TRUE(await([&] { return answered() == 60; })) << answered();
  EXPECT_EQ(letters().size(), 0u);
}

TEST_P(AtLeastOnceTest, RejectedResultDoesNotBlockOthers) {
  server_->command({"SET", "t:results:9", "a key of another kind"});
  for (std::uint64_t i = 0; i < 20; ++i) push(encode(id_of(i == 7 ? 9 : 0, i), {1}));
  const auto worker = start({"--attempts", "2", "--batch", "8"});
  EXPECT_TRUE(await([&] {
    std::set<std::uint64_t> ids;
    for (const auto& [id, message] : results()) ids.insert(id);
    return ids.size() == 19 && server_->integer({"XLEN", "t:dead"}) == 1;
  })) << results().size()
      << worker->err();
  EXPECT_FALSE(worker->ended()) << worker->err();
  EXPECT_EQ(letters().at(0)["id"], "0009000000000007");
}

INSTANTIATE_TEST_SUITE_P(Queues, DeliveryTest, kAllQueues, kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, NetworkDeliveryTest, testing::ValuesIn(queues_behind_a_network()), kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, PubsubTest, testing::Values("redis_pubsub"), kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, LargeTasksTest, testing::Values("redis_reliable"), kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, AtLeastOnceTest, kQueuesThatKeep, kQueueNames);

}  // namespace
}  // namespace feedrate::cli_test
