// What each queue promises when something dies: real servers, real workers, a ledger of every id.
#include <sys/resource.h>

#include "tests/cli/delivery.hpp"
#include "tests/cli/proxy.hpp"

namespace feedrate::cli_test {
namespace {

/// Queues that deliver at least once.
class AtLeastOnceTest : public DeliveryTest {};

class PubsubTest : public DeliveryTest {};

/// With tasks so large that redis_reliable takes them by LMOVE.
class LargeTasksTest : public DeliveryTest {
 protected:
  LargeTasksTest() {
    words_ = 252;  // the ledger pads none
    options_ = {"--payload", "1Ki"};
  }
};

TEST_P(DeliveryTest, WorkersAreKilledAtRandom) { kill_workers_at_random(); }

TEST_P(DeliveryTest, AZombieThatWakesSpoilsNothing) { stop_a_worker_beyond_its_lease(); }

TEST_P(DeliveryTest, ConnectionsAreCut) {
  const auto one = start(), two = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond);
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(Seconds(0.2));
    kill_connections_of_workers(ledger);
  }
  ledger.stop_sending();
  const double recovery = ledger.settle();
  judge("connections cut", ledger.tally(), recovery);
  EXPECT_FALSE(one->ended()) << one->err();
  EXPECT_FALSE(two->ended()) << two->err();
}

TEST_P(DeliveryTest, ProducersAndCollectorsAreKilled) {
  const auto worker = start();
  const Words load{"run",    "--external-worker", "--queue",      GetParam(),    "--device",
                   "cpu",    "--redis",           server_->url(), "--prefix",    "t",
                   "--json", "--window",          "64",           "--producers", "2"};
  const bool stream = GetParam() == "redis_stream";
  const char* const count = GetParam() == "redis_priority" ? "ZCARD" : "LLEN";
  for (int kills = 0; kills < 3; ++kills) {
    Words words = load;
    words.insert(words.end(), {"--seconds", "60", "--floor-rounds", "0"});
    const auto run = place_.start(words);
    ASSERT_TRUE(await([&] { return run->ended() || !results().empty(); }));
    ASSERT_FALSE(run->ended()) << run->err();
    run->signal(SIGKILL);
    run->wait();
    // The worker answers what they had sent. Nobody collects that: it expires, and until then no other run takes it for
    // its own.
    EXPECT_TRUE(await([&] { return stream || server_->integer({count, "t:tasks"}) == 0; }));
    push(encode(id_of(7, 0), {1}));  // behind all of that, so its answer comes last
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

TEST_P(DeliveryTest, TheNetworkIsSlowStalledAndCut) {
  Proxy network(server_->socket());
  const auto through = start_at(network.url()), beside = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond / 4);
  network.delay(0.02);
  std::this_thread::sleep_for(Seconds(0.5));
  network.delay(0);
  network.cut();
  std::this_thread::sleep_for(Seconds(0.3));
  network.stall();  // half open: nobody says that the connection is gone
  std::this_thread::sleep_for(Seconds(0.3));
  ledger.stop_sending();
  const double recovery = ledger.settle();
  judge("network slow, cut, half open", ledger.tally(), recovery);
  EXPECT_TRUE(await([&] { return through->err().find("no answer within 5 s") != std::string::npos; }))
      << "it still waits: " << through->err();
  // And it serves again, alone.
  beside->signal(SIGTERM);
  EXPECT_EQ(beside->wait(), 0);
  push(encode(id_of(1, 0), {1}));
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "t:results:1"}) == 1; })) << through->err();
  EXPECT_FALSE(through->ended()) << through->err();
}

// As a server's `timeout`, a proxy or a firewall does: only those where nobody waits for an answer.
TEST_P(DeliveryTest, IdleConnectionsThatAreClosedLoseNothing) {
  const auto worker = start();
  for (std::uint64_t n = 0; n < 3; ++n) {
    push(encode(id_of(0, n), {1, 2}));
    EXPECT_TRUE(await([&] { return results().size() == n + 1; })) << n << worker->err();
    std::this_thread::sleep_for(Seconds(0.2));
    EXPECT_GE(close_idle_connections(0), 1) << "else this shows nothing";
  }
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0) << worker->err();
}

TEST_P(PubsubTest, ClosedSubscriptionsAreMadeAnewWithoutAWarning) {
  const auto worker = start();
  for (std::uint64_t n = 0; n < 3; ++n) {
    EXPECT_TRUE(await([&] { return server_->integer({"CLIENT", "KILL", "TYPE", "pubsub"}) >= 1; })) << n;
    push(encode(id_of(0, n), {1, 2}));
    EXPECT_TRUE(await([&] { return results().size() == n + 1; })) << n << worker->err();
  }
  EXPECT_EQ(worker->err().find("again in"), std::string::npos) << worker->err();
}

TEST_P(DeliveryTest, BenchmarkWithPausesOutlivesItsIdleConnections) {
  const auto run = place_.start(
      {"run",    "--queue",  GetParam(), "--device",       "cpu",    "--redis",    server_->url(), "--arrivals",
       "bursts", "--rate",   "300",      "--burst-us",     "200000", "--pause-us", "3000000",      "--seconds",
       "4",      "--warmup", "0",        "--floor-rounds", "0",      "--json"});
  int closed = 0;
  while (!run->ended()) {
    std::this_thread::sleep_for(Seconds(0.1));
    closed += close_idle_connections(2);
  }
  EXPECT_EQ(run->wait(), 0) << run->err();
  EXPECT_GE(closed, 1) << "else this shows nothing";
  const Json row = rows_of(run->out()).back();
  EXPECT_NE(row.at("status"), "failed") << row.at("reason");
  EXPECT_EQ(row.at("details").at("counts").at("lost"), 0);
}

TEST_P(DeliveryTest, AServerThatHasNoMoreConnectionsIsQuoted) {
  server_->command({"CONFIG", "SET", "maxclients", "1"});
  const Outcome outcome = place_.run({"worker", "--queue", GetParam(), "--device", "cpu", "--redis", server_->url()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("max number of clients"), std::string::npos) << outcome.err;
}

TEST_P(DeliveryTest, AFullServerIsWaitedFor) { fill_the_server_for_a_second(); }

TEST_P(LargeTasksTest, WorkersAreKilledAtRandom) {
  kill_workers_at_random();
  const Reply calls = server_->command({"INFO", "commandstats"});
  EXPECT_NE(std::string(calls->str, calls->len).find("cmdstat_lmove:"), std::string::npos) << "else this shows nothing";
}
TEST_P(LargeTasksTest, AZombieThatWakesSpoilsNothing) { stop_a_worker_beyond_its_lease(); }
TEST_P(LargeTasksTest, AFullServerIsWaitedFor) { fill_the_server_for_a_second(); }

TEST_P(AtLeastOnceTest, WhatAKilledWorkerHeldIsServedAfterItsLease) {
  constexpr std::uint64_t kTasks = 16;
  const Words slow{"--workload", "fma_chain", "--flops-per-byte", "8192", "--payload", "4Ki", "--batch", "8"};
  const auto push_from = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < kTasks; ++i) push(encode(first + i, std::vector<std::uint32_t>(1024, 0)));
  };
  // Seconds until so many different tasks have an answer.
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
  // How long the work takes depends on the machine, of which others may have had a part: the worker that is left does
  // as much again, with nothing to wait for.
  push_from(kTasks);
  const double work = answered(2 * kTasks);
  // What was held comes within the lease and a second, and the rest besides.
  EXPECT_LT(seconds, kLease + 1 + 2 * work);
  RecordProperty("seconds", std::to_string(seconds));
  RecordProperty("work", std::to_string(work));
}

// With `appendfsync everysec` a server may lose what it acknowledged in its last seconds, so that nothing is promised.
TEST_P(AtLeastOnceTest, TheServerIsKilledAndComesBack) {
  server_.emplace(Words{"--appendonly", "yes", "--appendfsync", "always"});
  const auto one = start(), two = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond / 4);
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(Seconds(0.4));
    server_->kill_and_start();
  }
  std::this_thread::sleep_for(Seconds(0.4));
  ledger.stop_sending();
  const double recovery = ledger.settle();
  judge("server killed, AOF always", ledger.tally(), recovery);
  EXPECT_FALSE(one->ended()) << one->err();
  EXPECT_FALSE(two->ended()) << two->err();
}

TEST_P(AtLeastOnceTest, AServerWhoseDiskIsFullIsWaitedFor) {
  ::signal(SIGXFSZ, SIG_IGN);  // which the server inherits: a write beyond the limit fails, as on a full disk
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
  limit_files(64 << 10);  // less than the append-only file has by now
  const auto refuses = [&] {
    const Reply reply = server_->command({"SET", "probe", "1"});
    return reply && reply->type == REDIS_REPLY_ERROR && std::string(reply->str).starts_with("MISCONF");
  };
  EXPECT_TRUE(await(refuses)) << "the disk is not full";
  std::this_thread::sleep_for(Seconds(0.5));
  limit_files(RLIM_INFINITY);
  EXPECT_TRUE(await([&] { return !refuses(); }));
  std::this_thread::sleep_for(Seconds(0.5));
  ledger.stop_sending();
  const double recovery = ledger.settle();
  judge("disk of the server full, AOF everysec", ledger.tally(), recovery);
  EXPECT_FALSE(one->ended()) << one->err();
  EXPECT_FALSE(two->ended()) << two->err();
}

TEST_P(AtLeastOnceTest, RightsThatComeBackMakeNoDeadLetters) {
  constexpr std::uint64_t kTasks = 8;
  const std::string command = GetParam() == "redis_stream" ? "xadd" : "lpush";
  for (std::uint64_t n = 0; n < kTasks; ++n) push(encode(id_of(0, n), {1, 2}));
  // It may take tasks, and not answer them.
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

TEST_P(AtLeastOnceTest, NothingIsLeftOfWorkersThatEnded) {
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
  // One that was only started has not read yet, and is no consumer so far.
  const auto cards = [&](const char* key) { return server_->integer({"ZCARD", key}); };
  EXPECT_TRUE(await([&] { return cards("t:leases") == 1 && cards("t:graves") == 0 && consumers() <= 1; }))
      << cards("t:leases") << " leases, " << cards("t:graves") << " graves, " << consumers() << " consumers";
  for (const char* pattern : {"t:processing:*", "t:alone:*", "t:suspects", "t:history"}) {
    EXPECT_EQ(server_->command({"KEYS", pattern})->elements, 0u) << pattern;
  }
}

TEST_P(AtLeastOnceTest, PoisonedMessagesDieAloneAndTheirMatesSucceed) {
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
  const char* end = device_ == "cpu" ? "by signal 11" : "with exit code 1";  // a GPU's context breaks, not the process
  EXPECT_NE((one->err() + two->err()).find(end), std::string::npos) << one->err() << two->err();
  for (const auto& worker : {one.get(), two.get()}) {
    worker->signal(SIGTERM);
    EXPECT_EQ(worker->wait(), 0) << worker->err();
  }
}

TEST_P(AtLeastOnceTest, AnOrderlyEndBlamesNoMessage) {
  const Words slow{"--workload", "fma_chain", "--flops-per-byte", "2048", "--payload", "4Ki",
                   "--batch",    "64",        "--attempts",       "2",    "--name",    "w"};
  for (std::uint64_t i = 0; i < 120; ++i) push(encode(i, std::vector<std::uint32_t>(1024, 0)));
  auto worker = start(slow);
  ASSERT_TRUE(await([&] { return !results().empty(); }));
  worker->signal(SIGKILL);
  worker->wait();
  // What it held was delivered once; a second delivery that ends badly would be the last.
  const auto answered = [&] {
    std::set<std::uint64_t> ids;
    for (const auto& [id, message] : results()) ids.insert(id);
    return ids.size();
  };
  for (int i = 0; i < 6 && answered() < 120; ++i) {
    worker = start(slow);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 15 * i));
    worker->signal(SIGTERM);
    EXPECT_EQ(worker->wait(), 0) << worker->err();
  }
  worker = start(slow);
  EXPECT_TRUE(await([&] { return answered() == 120; })) << answered();
  EXPECT_EQ(letters().size(), 0u);
}

TEST_P(AtLeastOnceTest, AResultThatIsRefusedHoldsUpNobodyElse) {
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
INSTANTIATE_TEST_SUITE_P(Queues, PubsubTest, testing::Values("redis_pubsub"), kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, LargeTasksTest, testing::Values("redis_reliable"), kQueueNames);
INSTANTIATE_TEST_SUITE_P(Queues, AtLeastOnceTest, kQueuesThatKeep, kQueueNames);

}  // namespace
}  // namespace feedrate::cli_test
