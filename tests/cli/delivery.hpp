#pragma once
#include <algorithm>
#include <random>

#include "tests/cli/ledger.hpp"
#include "tests/cli/provenance.hpp"
#include "tests/support/long.hpp"

namespace feedrate::cli_test {

inline constexpr double kLease = 0.6;  // seconds; shorter than the default, so that tests wait less
inline constexpr double kPerSecond = 8000;

/// A user's Redis server and workers for the queue that the test parameter selects. With FEEDRATE_FAULTS=FILE each
/// fault appends a line of JSON to that file; the line also records the host, the GPU and the version. The table of
/// guarantees is generated from these lines. FEEDRATE_TEST_DEVICE sets the workers' device: with `cuda` a poisoned
/// message breaks a real context.
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
    Words words{"--queue", GetParam(), "--device", device_, "--redis", url, "--prefix", "t"};
    words.insert(words.end(), {"--lease", std::to_string(kLease), "--retry-after", "0.05"});
    words.insert(words.end(), options_.begin(), options_.end());
    return start_worker(place_, words, more);
  }
  /// Adds the result of a test to the table, which covers only workers with default options.
  void record(const char* fault, const Ledger::Tally& tally, std::optional<double> recovery_seconds = {}) {
    if (const char* file = std::getenv("FEEDRATE_FAULTS"); file != nullptr && options_.empty()) {
      Json line{{"queue", GetParam()},    {"fault", fault},
                {"device", device_},      {"sent", tally.sent},
                {"lost", tally.lost},     {"duplicated", tally.duplicated},
                {"failed", tally.failed}, {"recovery_seconds", recovery_seconds ? Json(*recovery_seconds) : Json()}};
      line.update(provenance(place_, device_));
      std::ofstream(file, std::ios::app) << line.dump() << "\n";
    }
  }
  /// Records the result and checks it against the queue's guarantee.
  void judge(const char* fault, const Ledger::Tally& tally, double recovery_seconds = 0) {
    record(fault, tally, recovery_seconds);
    RecordProperty("lost", static_cast<int>(tally.lost));
    RecordProperty("duplicated", static_cast<int>(tally.duplicated));
    EXPECT_GT(tally.sent, 100u);
    EXPECT_GT(tally.answered, tally.sent / 2) << "fewer than half of the tasks were served";
    EXPECT_LE(tally.failed, given_up());
    EXPECT_LT(tally.duplicated, tally.sent / 4) << "more duplicates than workers can hold";
    if (at_least_once()) {
      EXPECT_EQ(tally.lost, 0u) << "of " << tally.sent;
    } else {
      EXPECT_EQ(tally.duplicated, 0u) << "the queue delivers at most once";
    }
  }
  /// Closes connections that have been idle for at least `seconds` without awaiting a reply; returns their number.
  int close_idle_connections(int seconds) {
    const Reply list = server_->command({"CLIENT", "LIST"});
    const long long own = server_->integer({"CLIENT", "ID"});
    const auto number = [](const std::string& line, const std::string& field) {
      return std::stoll(line.substr(line.find(field) + field.size()));
    };
    std::istringstream lines(std::string(list->str, list->len));
    int closed = 0;
    for (std::string line; std::getline(lines, line);) {
      const long long id = number(line, "id=");
      if (id == own || line.find(" flags=b") != line.npos || line.find(" flags=P") != line.npos) continue;
      if (number(line, " idle=") < seconds) continue;
      closed += server_->integer({"CLIENT", "KILL", "ID", std::to_string(id)}) == 1 ? 1 : 0;
    }
    return closed;
  }
  // Faults that several test classes inject.
  void kill_workers_at_random() {
    std::mt19937 random(23);
    const int kills = test::long_tests() ? 100 : 4;
    std::vector<std::unique_ptr<Process>> workers;
    for (int i = 0; i < 2; ++i) workers.push_back(start());
    Ledger ledger(server_->socket(), GetParam());
    ledger.start_sending(kPerSecond, words_);
    for (int i = 0; i < kills; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30 + random() % 100));
      auto& victim = workers[random() % workers.size()];
      victim->signal(SIGKILL);
      victim->wait();
      victim = start();
    }
    ledger.stop_sending();
    const double recovery = ledger.settle();
    judge("worker killed", ledger.tally(), recovery);
  }
  void stop_a_worker_beyond_its_lease() {
    auto zombie = start(), other = start();
    Ledger ledger(server_->socket(), GetParam());
    ledger.start_sending(kPerSecond, words_);
    std::this_thread::sleep_for(Seconds(0.2));
    const auto await_leases = [&](long long n) {
      EXPECT_TRUE(await([&] { return server_->integer({"ZCARD", "t:leases"}) == n; })) << n;
    };
    if (at_least_once()) await_leases(2);
    zombie->signal(SIGSTOP);
    if (at_least_once()) {
      await_leases(1);  // the other worker has taken over
    } else {
      std::this_thread::sleep_for(Seconds(kLease));
    }
    zombie->signal(SIGCONT);
    std::this_thread::sleep_for(Seconds(0.2));
    ledger.stop_sending();
    const double recovery = ledger.settle();
    judge("worker stopped beyond its lease", ledger.tally(), recovery);
    EXPECT_FALSE(zombie->ended()) << zombie->err();
    // The resumed worker continues to serve.
    other->signal(SIGTERM);
    EXPECT_EQ(other->wait(), 0) << other->err();
    push(encode(id_of(1, 0), {1}));  // the ledger does not read list 1
    EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "t:results:1"}) == 1; })) << zombie->err();
  }
  void fill_the_server_for_a_second() {
    const auto worker = start();
    Ledger ledger(server_->socket(), GetParam());
    ledger.start_sending(kPerSecond, words_);
    std::this_thread::sleep_for(Seconds(0.1));
    // This is less memory than the server uses, so the server rejects every write.
    server_->command({"CONFIG", "SET", "maxmemory", "1mb"});
    std::this_thread::sleep_for(Seconds(1));
    server_->command({"CONFIG", "SET", "maxmemory", "0"});
    std::this_thread::sleep_for(Seconds(0.1));
    ledger.stop_sending();
    const double recovery = ledger.settle();
    judge("server full for a second", ledger.tally(), recovery);
    EXPECT_FALSE(worker->ended()) << worker->err();
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
  /// Results in list 0 so far, by id, including duplicates.
  std::multimap<std::uint64_t, Message> results() {
    std::multimap<std::uint64_t, Message> found;
    for (const std::string& element : result_elements(*server_, GetParam())) {
      const Message message = decode(element);
      found.emplace(message.id, message);
    }
    return found;
  }
  std::vector<Json> letters() {
    const Outcome outcome = dlq({"list", "--json", "--most", "100000"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return rows_of(outcome.out);
  }
  /// Number of tasks that became dead letters after the maximum number of deliveries because each was the only task of
  /// a worker that was killed. If workers are killed at random, or wait long for CPU time, this can happen to any task.
  std::size_t given_up() {
    const std::vector<Json> dead = letters();
    return static_cast<std::size_t>(std::ranges::count_if(dead, [](const Json& one) { return one["attempts"] >= 3; }));
  }
  Outcome dlq(const Words& words) {
    Words all{"dlq"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--redis", server_->url(), "--prefix", "t"});
    return place_.run(all);
  }
  std::size_t words_ = 16;  // 4-byte words per task of the ledger
  Words options_;           // passed to every worker
  const std::string device_ = from_environment("FEEDRATE_TEST_DEVICE", "cpu");
  std::optional<RedisServer> server_;
  Workplace place_;
};

inline const auto kQueueNames = [](const testing::TestParamInfo<std::string>& info) { return info.param; };
inline const auto kAllQueues =
    testing::Values("redis_list", "redis_priority", "redis_pubsub", "redis_reliable", "redis_stream");
inline const auto kQueuesThatKeep = testing::Values("redis_priority", "redis_reliable", "redis_stream");

}  // namespace feedrate::cli_test
