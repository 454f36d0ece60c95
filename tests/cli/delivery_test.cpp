// What each queue promises when something dies: real servers, real workers, a ledger of every id. With
// FEEDRATE_FAULTS=FILE each case adds a line of JSON to that file, from which the table of guarantees is made.
// FEEDRATE_TEST_DEVICE names the workers' device: with `cuda` a poisoned message breaks a real context.
#include <random>

#include "tests/cli/ledger.hpp"
#include "tests/cli/proxy.hpp"

namespace feedrate::cli_test {
namespace {

constexpr double kLease = 0.6;  // seconds; the default is longer, and a test would wait for it
constexpr double kPerSecond = 8000;

class DeliveryTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    FEEDRATE_NEEDS_REDIS();
    server_.emplace(server_settings());
  }
  virtual Words server_settings() const { return {}; }
  bool at_least_once() const { return cli_test::at_least_once(GetParam()); }
  std::unique_ptr<Process> start(const Words& more = {}) { return start_at(server_->url(), more); }
  std::unique_ptr<Process> start_at(const std::string& url, const Words& more = {}) {
    Words words{"worker",
                "--queue",
                GetParam(),
                "--device",
                device_,
                "--redis",
                url,
                "--prefix",
                "t",
                "--lease",
                std::to_string(kLease),
                "--retry-after",
                "0.05"};
    words.insert(words.end(), more.begin(), more.end());
    auto process = place_.start(words);
    EXPECT_TRUE(await([&] { return process->err().find("worker ") != std::string::npos; })) << process->err();
    return process;
  }
  /// What a case found, into the table; and what the guarantee says of it.
  void judge(const char* fault, const Ledger::Tally& tally, double recovery_seconds = 0) {
    if (const char* file = std::getenv("FEEDRATE_FAULTS")) {
      std::ofstream(file, std::ios::app) << Json{{"queue", GetParam()},    {"fault", fault},
                                                 {"device", device_},      {"sent", tally.sent},
                                                 {"lost", tally.lost},     {"duplicated", tally.duplicated},
                                                 {"failed", tally.failed}, {"recovery_seconds", recovery_seconds}}
                                                .dump()
                                         << "\n";
    }
    RecordProperty("lost", static_cast<int>(tally.lost));
    RecordProperty("duplicated", static_cast<int>(tally.duplicated));
    EXPECT_GT(tally.sent, 100u);
    EXPECT_GT(tally.answered, tally.sent / 2) << "hardly anything was served";
    EXPECT_EQ(tally.failed, 0u);
    if (at_least_once()) {
      EXPECT_EQ(tally.lost, 0u) << "of " << tally.sent;
    } else {
      EXPECT_EQ(tally.duplicated, 0u) << "at most once";
    }
  }
  void kill_connections_of_workers(const Ledger& ledger) {
    const Reply list = server_->command({"CLIENT", "LIST"});
    const long long own = server_->integer({"CLIENT", "ID"});
    std::istringstream lines(std::string(list->str, list->len));
    for (std::string line; std::getline(lines, line);) {
      const long long id = std::stoll(line.substr(line.find('=') + 1));
      if (id != own && !ledger.connections().contains(id))
        server_->command({"CLIENT", "KILL", "ID", std::to_string(id)});
    }
  }
  void push(const std::string& task) { add_task(*server_, GetParam(), task); }
  /// The results for list 0 so far, by id; those of an id that came twice are both there.
  std::multimap<std::uint64_t, Message> results() {
    const bool stream = GetParam() == "redis_stream";
    const Reply reply = stream ? server_->command({"XRANGE", "t:results:0", "-", "+"})
                               : server_->command({"LRANGE", "t:results:0", "0", "-1"});
    std::multimap<std::uint64_t, Message> found;
    for (std::size_t i = 0; reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; ++i) {
      const redisReply& element = stream ? *reply->element[i]->element[1]->element[1] : *reply->element[i];
      const Message message = decode({element.str, element.len});
      found.emplace(message.id, message);
    }
    return found;
  }
  std::vector<Json> letters() {
    const Outcome outcome = place_.run({"dlq", "list", "--json", "--redis", server_->url(), "--prefix", "t"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return rows_of(outcome.out);
  }
  Outcome dlq(const Words& words) {
    Words all{"dlq"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--redis", server_->url(), "--prefix", "t"});
    return place_.run(all);
  }
  const std::string device_ = from_environment("FEEDRATE_TEST_DEVICE", "cpu");
  std::optional<RedisServer> server_;
  Workplace place_;
};

TEST_P(DeliveryTest, WorkersAreKilledAtRandom) {
  std::mt19937 random(23);
  const int kills = std::getenv("FEEDRATE_LONG_TESTS") != nullptr ? 100 : 12;
  std::vector<std::unique_ptr<Process>> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(start());
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond);
  for (int i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 150));
    auto& victim = workers[random() % workers.size()];
    victim->signal(SIGKILL);
    victim->wait();
    victim = start();
  }
  ledger.stop_sending();
  const double recovery = ledger.settle(Seconds(2 + 4 * kLease));
  judge("worker killed", ledger.tally(), recovery);
}

TEST_P(DeliveryTest, WhatAKilledWorkerHeldIsServedAfterItsLease) {
  if (!at_least_once()) GTEST_SKIP() << "delivers at most once";
  const Words slow{"--workload", "fma_chain", "--flops-per-byte", "8192", "--payload", "4Ki", "--batch", "8"};
  const auto held = start(slow);
  for (std::uint64_t i = 0; i < 40; ++i) push(encode(i, std::vector<std::uint32_t>(1024, 0)));
  ASSERT_TRUE(await([&] { return !results().empty(); }));
  const auto other = start(slow);
  held->signal(SIGKILL);
  held->wait();
  const auto killed = std::chrono::steady_clock::now();
  std::set<std::uint64_t> seen;
  EXPECT_TRUE(await([&] {
    for (const auto& [id, message] : results()) seen.insert(id);
    return seen.size() == 40;
  })) << seen.size();
  const double seconds = Seconds(std::chrono::steady_clock::now() - killed).count();
  // The first comes within the lease and a second; here all of the few that were held do, and the rest besides.
  EXPECT_LT(seconds, kLease + 1 + 2) << "with the work itself";
  RecordProperty("seconds", std::to_string(seconds));
}

TEST_P(DeliveryTest, AZombieThatWakesSpoilsNothing) {
  auto zombie = start(), other = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond);
  std::this_thread::sleep_for(Seconds(0.3));
  zombie->signal(SIGSTOP);
  std::this_thread::sleep_for(Seconds(3 * kLease));
  zombie->signal(SIGCONT);
  std::this_thread::sleep_for(Seconds(0.5));
  ledger.stop_sending();
  const double recovery = ledger.settle(Seconds(2 + 4 * kLease));
  judge("worker stopped beyond its lease", ledger.tally(), recovery);
  EXPECT_FALSE(zombie->ended()) << zombie->err();
  // It serves on.
  other->signal(SIGTERM);
  EXPECT_EQ(other->wait(), 0) << other->err();
  Ledger again(server_->socket(), GetParam());
  push(encode(1ULL << 40, {1}));
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "t:results:0"}) == 0 || !results().empty(); }));
}

TEST_P(DeliveryTest, ConnectionsAreCut) {
  const auto one = start(), two = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond);
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(Seconds(0.2));
    kill_connections_of_workers(ledger);
  }
  ledger.stop_sending();
  const double recovery = ledger.settle(Seconds(2 + 4 * kLease));
  judge("connections cut", ledger.tally(), recovery);
  EXPECT_FALSE(one->ended()) << one->err();
  EXPECT_FALSE(two->ended()) << two->err();
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
  const double recovery = ledger.settle(Seconds(7));
  judge("network slow, cut, half open", ledger.tally(), recovery);
  EXPECT_TRUE(await([&] { return through->err().find("no answer within 5 s") != std::string::npos; }, Seconds(8)))
      << "it still waits: " << through->err();
  // And it serves again, alone.
  beside->signal(SIGTERM);
  EXPECT_EQ(beside->wait(), 0);
  push(encode(1ULL << 40, {1}));
  EXPECT_TRUE(await([&] {
    return server_->integer({"EXISTS", "t:tasks"}) == 0 || GetParam() == "redis_stream";
  })) << through->err();
  EXPECT_FALSE(through->ended()) << through->err();
}

TEST_P(DeliveryTest, AFullServerIsWaitedFor) {
  const auto worker = start();
  Ledger ledger(server_->socket(), GetParam());
  ledger.start_sending(kPerSecond);
  std::this_thread::sleep_for(Seconds(0.3));
  server_->command({"CONFIG", "SET", "maxmemory", "1mb"});  // less than it uses: every write is refused
  std::this_thread::sleep_for(Seconds(1));
  server_->command({"CONFIG", "SET", "maxmemory", "0"});
  std::this_thread::sleep_for(Seconds(0.5));
  ledger.stop_sending();
  const double recovery = ledger.settle(Seconds(4 + 4 * kLease));
  judge("server full for a second", ledger.tally(), recovery);
  EXPECT_FALSE(worker->ended()) << worker->err();
}

TEST_P(DeliveryTest, TheServerIsKilledAndComesBack) {
  if (!at_least_once()) GTEST_SKIP() << "delivers at most once";
  for (const char* fsync : {"always", "everysec"}) {
    server_.emplace(Words{"--appendonly", "yes", "--appendfsync", fsync});
    const auto one = start(), two = start();
    Ledger ledger(server_->socket(), GetParam());
    ledger.start_sending(kPerSecond / 4);
    for (int i = 0; i < 2; ++i) {
      std::this_thread::sleep_for(Seconds(0.4));
      server_->kill_and_start();
    }
    std::this_thread::sleep_for(Seconds(0.4));
    ledger.stop_sending();
    const double recovery = ledger.settle(Seconds(4 + 4 * kLease));
    // Nothing is lost with everysec either: the system has what the dead process wrote. Only a power cut takes a
    // second.
    judge(fsync == std::string("always") ? "server killed, AOF always" : "server killed, AOF everysec", ledger.tally(),
          recovery);
    EXPECT_FALSE(one->ended()) << one->err();
    EXPECT_FALSE(two->ended()) << two->err();
  }
}

TEST_P(DeliveryTest, NothingIsLeftOfWorkersThatEnded) {
  if (!at_least_once()) GTEST_SKIP() << "has no leases";
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
  EXPECT_TRUE(await([&] { return cards("t:leases") == 1 && cards("t:graves") == 0 && consumers() <= 1; }, Seconds(8)))
      << cards("t:leases") << " leases, " << cards("t:graves") << " graves, " << consumers() << " consumers";
  for (const char* pattern : {"t:processing:*", "t:alone:*", "t:suspects", "t:history"}) {
    EXPECT_EQ(server_->command({"KEYS", pattern})->elements, 0u) << pattern;
  }
}

TEST_P(DeliveryTest, AWorkloadThatSaysNotNowIsAskedAgain) {
  const auto worker = start({"--workload", "faulty", "--attempts", "3"});
  constexpr std::uint32_t kAgainDrill = 0xFA17'0002;
  push(encode(1, {kAgainDrill, 2, 0, 0}));  // succeeds at its third delivery
  push(encode(2, {kAgainDrill, 9, 0, 0}));  // never within three
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
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 2) << "three lines: " << history;
  EXPECT_TRUE(await([&] { return server_->integer({"HLEN", "t:history"}) == 0; })) << "of what is over";
}

TEST_P(DeliveryTest, PoisonedMessagesDieAloneAndTheirMatesSucceed) {
  if (!at_least_once()) GTEST_SKIP() << "delivers at most once";
  constexpr std::uint32_t kCrash = 0xFA17'0003;
  const std::set<std::uint64_t> poisoned{77, 130, 131};
  for (std::uint64_t i = 0; i < 200; ++i) push(encode(i, {poisoned.contains(i) ? kCrash : 5u, 6, 7, 8}));
  const Words faulty{"--workload", "faulty", "--attempts", "3", "--supervise", "--batch", "64"};
  const auto one = start(faulty), two = start(faulty);
  std::set<std::uint64_t> ids;
  EXPECT_TRUE(await(
      [&] {
        for (const auto& [id, message] : results()) ids.insert(id);
        return ids.size() == 200;
      },
      Seconds(60)))
      << ids.size() << one->err() << two->err();
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
  EXPECT_NE((one->err() + two->err()).find("by signal 11"), std::string::npos);
  for (const auto& worker : {one.get(), two.get()}) {
    worker->signal(SIGTERM);
    EXPECT_EQ(worker->wait(), 0) << worker->err();
  }
}

TEST_P(DeliveryTest, AnOrderlyEndBlamesNoMessage) {
  if (!at_least_once()) GTEST_SKIP() << "delivers at most once";
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

TEST_P(DeliveryTest, AResultThatIsRefusedHoldsUpNobodyElse) {
  if (!at_least_once()) GTEST_SKIP() << "delivers at most once";
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

TEST_P(DeliveryTest, DeadLettersAreShownGivenBackAndRemoved) {
  auto worker = start({"--payload", "64"});
  push("garbage");
  push(encode(5, std::vector<std::uint32_t>(100, 1)));  // too long
  ASSERT_TRUE(await([&] { return letters().size() == 2; })) << worker->err();
  auto dead = letters();
  if (dead[0].contains("id")) std::swap(dead[0], dead[1]);  // a sorted set gives them back in another order
  EXPECT_EQ(dead[0]["task_hex"], "67617262616765");
  EXPECT_FALSE(dead[0].contains("id"));
  EXPECT_EQ(dead[1]["id"], "0000000000000005");
  EXPECT_EQ(dead[1]["payload_hex"].get<std::string>().size(), 800u) << "all of it, not what fits a slot";
  const std::string garbage = dead[0]["letter"], letter = dead[1]["letter"];
  const Outcome shown = dlq({"show", letter});
  EXPECT_NE(shown.out.find("400 bytes of payload"), std::string::npos) << shown.out;
  EXPECT_EQ(dlq({"requeue", garbage}).code, 1) << "there is no message to give back";
  EXPECT_EQ(dlq({"show", "1-1"}).code, 2);
  EXPECT_EQ(dlq({"requeue"}).code, 2);
  worker->signal(SIGTERM);
  worker->wait();
  worker = start({"--payload", "1Ki"});
  EXPECT_EQ(dlq({"requeue", letter}).out, "requeued 1 dead letter\n");
  EXPECT_TRUE(await([&] {
    const auto found = results();
    return found.count(5) == 2;  // the failure, and now the result
  })) << worker->err();
  EXPECT_EQ(dlq({"purge", "--all"}).out, "purged 1 dead letter\n");
  EXPECT_EQ(letters().size(), 0u);
}

TEST_P(DeliveryTest, AnExpiredTaskIsNotServed) {
  const auto worker = start();
  const auto with_deadline = [](std::uint64_t id, std::uint64_t deadline_ms) {
    std::string task = encode(id, {41});
    task[12] = 1;  // version 1: sixteen bytes more of header
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
  EXPECT_EQ(found.find(3)->second.length, kFailed | 7) << "a version that this worker does not know";
}

TEST_P(DeliveryTest, AnIdIsAnsweredOnceWithinItsWindow) {
  if (GetParam() != "redis_reliable" && GetParam() != "redis_priority") GTEST_SKIP() << "has no axis `once`";
  const auto worker = start({"--once", "60"});
  for (const std::uint64_t id : {1, 2, 1, 1, 3}) {
    push(padded(encode(id, {7})) + encode(id, {8}));  // unequal elements: a sorted set holds equal ones once
    push(encode(id, {9}));
  }
  ASSERT_TRUE(await([&] { return results().size() >= 3 && server_->integer({"EXISTS", "t:tasks"}) == 0; }));
  std::this_thread::sleep_for(Seconds(0.2));
  const auto found = results();
  EXPECT_EQ(found.size(), 3u) << "one result for each id";
  // And while workers die.
  Ledger ledger(server_->socket(), GetParam());
  auto other = start({"--once", "60"});
  ledger.start_sending(kPerSecond);
  for (int i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(Seconds(0.1));
    other->signal(SIGKILL);
    other->wait();
    other = start({"--once", "60"});
  }
  ledger.stop_sending();
  ledger.settle(Seconds(2 + 4 * kLease));
  EXPECT_EQ(ledger.tally().duplicated, 0u);
  EXPECT_LE(ledger.tally().lost, 4u) << "of ids 1 to 3, answered above";
}

TEST_P(DeliveryTest, TheLessImportantWaitNoLongerThanOvertakingAllows) {
  if (GetParam() != "redis_priority") GTEST_SKIP() << "has no priorities";
  // A worker that is always behind: what is important keeps coming with a score of its own time less a second.
  const auto now_us = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto add = [&](std::uint64_t id, bool important) {
    const auto score = now_us() - (important ? 1'000'000 : 0);
    server_->command({"ZADD", "t:tasks", std::to_string(score), encode(id, std::vector<std::uint32_t>(1024, 1))});
  };
  const auto worker =
      start({"--workload", "fma_chain", "--flops-per-byte", "8192", "--payload", "4Ki", "--batch", "1"});
  for (std::uint64_t id = 100; id < 200; ++id) add(id, true);
  add(1, false);
  std::uint64_t next = 1000;
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [&] { return Seconds(std::chrono::steady_clock::now() - begin).count(); };
  while (results().count(1) == 0 && since() < 15) {
    while (server_->integer({"ZCARD", "t:tasks"}) < 100) add(next++, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GT(since(), 0.8) << "what was important went first";
  EXPECT_LT(since(), 8) << "but not for ever";
  EXPECT_GT(next, 1000u) << "it was never behind";
}

TEST_P(DeliveryTest, ResultsThatNobodyCollectsExpire) {
  const auto worker = start({"--results-expire", "0.3"});
  push(encode(1, {1}));
  ASSERT_TRUE(await([&] { return results().size() == 1; }));
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "t:results:0"}) == 0; }, Seconds(5)));
}

INSTANTIATE_TEST_SUITE_P(Queues, DeliveryTest,
                         testing::Values("redis_list", "redis_priority", "redis_pubsub", "redis_reliable",
                                         "redis_stream"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::cli_test
