// A user's own server: a benchmark touches only the keys of its own run and leaves none of them behind.
#include <cstring>
#include <map>
#include <set>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class SharedServer : public testing::Test {
 protected:
  void SetUp() override {
    FEEDRATE_NEEDS_REDIS();
    server_.emplace();
  }
  std::set<std::string> keys() {
    std::set<std::string> all;
    const Reply reply = server_->command({"KEYS", "*"});
    for (std::size_t i = 0; reply && i < reply->elements; ++i) all.emplace(reply->element[i]->str);
    return all;
  }
  /// Value of each key in Redis's own serialisation.
  std::map<std::string, std::string> contents() {
    std::map<std::string, std::string> all;
    for (const std::string& key : keys()) {
      const Reply reply = server_->command({"DUMP", key});
      if (reply && reply->str != nullptr) all[key] = std::string(reply->str, reply->len);
    }
    return all;
  }
  void plant() {
    server_->command({"LPUSH", "feedrate:tasks", "somebody's task"});
    server_->command({"SET", "feedrate:results:0", "somebody's text"});
    server_->command({"SET", "feedrate", "another"});
  }
  /// Waits until a run has keys that satisfy `wanted`, and returns them.
  std::set<std::string> await_keys(const Process& process, const std::function<bool(const std::string&)>& wanted) {
    std::set<std::string> found;
    const bool appeared = await([&] {
      found.clear();
      for (const std::string& key : keys()) {
        if (key.starts_with("feedrate:{bench-") && wanted(key)) found.insert(key);
      }
      return !found.empty();
    });
    EXPECT_TRUE(appeared) << process.err();
    return found;
  }
  std::set<std::string> await_keys_of_a_run(const Process& process) {
    return await_keys(process, [](const std::string& key) { return key.find(":limit:") == key.npos; });
  }
  /// Checks that all keys except `others` will expire.
  void expect_expiring(const std::map<std::string, std::string>& others = {}) {
    for (const std::string& key : keys()) {
      if (others.contains(key)) continue;
      const long long left = server_->integer({"PTTL", key});
      EXPECT_TRUE(left == -2 || (left > 0 && left <= 60'000)) << key << " expires in " << left << " ms";
    }
  }
  std::optional<RedisServer> server_;
  Workplace place_;
};

class SharedRedis : public SharedServer, public testing::WithParamInterface<std::string> {
 protected:
  bool stream() const { return GetParam() == "redis_stream"; }
  Words run(Words more = {}) const {
    Words words{"run", "--queue", GetParam(), "--device", "cpu", "--warmup", "0", "--redis", server_->url()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_P(SharedRedis, RunRemovesItsOwnKeysOnly) {
  plant();
  const auto before = contents();
  const Outcome outcome = place_.run(run({"--messages", "3000", "--producers", "2", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_clean(measured_in(outcome.out).at(0));
  EXPECT_EQ(contents(), before);
}

TEST_P(SharedRedis, KeysOfARunShareOneSlotAndNameTheirOwner) {
  const auto process = place_.start(run({"--seconds", "60"}));
  const auto found = await_keys_of_a_run(*process);
  ASSERT_FALSE(found.empty());
  const std::string prefix = found.begin()->substr(0, found.begin()->find('}') + 1);
  for (const std::string& key : found) EXPECT_TRUE(key.starts_with(prefix + ":")) << key;
  const Reply owner = server_->command({"GET", prefix + ":owner"});
  ASSERT_TRUE(owner && owner->type == REDIS_REPLY_STRING);
  EXPECT_NE(std::string(owner->str).find("process "), std::string::npos) << owner->str;
  process->signal(SIGINT);
  EXPECT_EQ(process->wait(), 130);
  EXPECT_TRUE(keys().empty());
}

TEST_P(SharedRedis, KeysOfAKilledRunExpire) {
  plant();
  const auto others = contents();
  const auto process = place_.start(run({"--seconds", "60", "--window", "64"}));
  await_keys_of_a_run(*process);
  process->signal(SIGKILL);
  process->wait();
  expect_expiring(others);
  for (const auto& [key, value] : others) EXPECT_EQ(server_->integer({"PTTL", key}), -1) << key;
  // A later run uses its own keys.
  EXPECT_EQ(place_.run(run({"--messages", "500"})).code, 0);
}

TEST_F(SharedServer, PersistenceOfAUsersServerIsNotChanged) {
  const Words words{"run",      "--queue", "redis_list", "--redis", server_->url(),
                    "--device", "cpu",     "--messages", "100",     "--json"};
  const Outcome changed = place_.run([&] {
    Words more = words;
    more.insert(more.end(), {"--aof", "always"});
    return more;
  }());
  EXPECT_NE(changed.code, 0);
  EXPECT_NE((changed.out + changed.err).find("--aof always: only a private server can be set"), std::string::npos)
      << changed.out << changed.err;
  const auto durable = [&] { return measured_in(place_.run(words).out).at(0).at("cost").at("durable").get<bool>(); };
  EXPECT_FALSE(durable());
  server_->command({"CONFIG", "SET", "appendonly", "yes"});
  EXPECT_FALSE(durable()) << "a crash may lose a second";
  server_->command({"CONFIG", "SET", "appendfsync", "always"});
  EXPECT_TRUE(durable()) << "the server persists every message";
}

TEST_F(SharedServer, KeysOfKilledLimitsExpire) {
  for (int wait_ms = 0; wait_ms < 150; wait_ms += 50) {
    const auto process = place_.start({"limits", "--device", "cpu", "--redis", server_->url()});
    await_keys(*process, [](const std::string& key) { return key.find(":limit:") != key.npos; });
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
    process->signal(SIGKILL);
    process->wait();
    expect_expiring();
  }
}

TEST_P(SharedRedis, FailedRunLeavesNoKeys) {
  const auto process = place_.start(run({"--seconds", "60", "--window", "4096"}));
  await_keys_of_a_run(*process);
  server_->command({"CONFIG", "SET", "maxmemory", "1"});  // the server now rejects pushes
  EXPECT_EQ(process->wait(), 1) << process->out();
  EXPECT_TRUE(keys().empty()) << *keys().begin();
}

TEST_P(SharedRedis, ReplyListOfAnotherProgramIsRejected) {
  server_->command({"SET", "feedrate:results:1", "somebody's result"});
  const Outcome outcome = place_.run(run({"--messages", "100", "--producers", "2", "--external-worker", "--json"}));
  EXPECT_EQ(outcome.code, 1);
  const std::string reason = measured_in(outcome.out).at(0).at("reason");
  for (const char* said : {"feedrate:results:1", "does not belong to this run", "--prefix"})
    EXPECT_NE(reason.find(said), std::string::npos) << reason;
  EXPECT_EQ(server_->integer({"EXISTS", "feedrate:results:1"}), 1);
}

TEST_P(SharedRedis, UnclaimedTasksAreRemoved) {
  std::string foreign(32, '\0');
  foreign[6] = 9;  // reply list 9
  if (stream()) {
    server_->command({"XADD", "feedrate:tasks", "*", "m", foreign});
  } else {
    server_->command({"LPUSH", "feedrate:tasks", foreign});
  }
  const auto before = contents();
  const Outcome outcome =
      place_.run(run({"--external-worker", "--watchdog", "0.5", "--producers", "2", "--json", "--window", "300"}));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(std::string(measured_in(outcome.out).at(0).at("reason")).find("watchdog"), std::string::npos);
  EXPECT_EQ(server_->integer({stream() ? "XLEN" : "LLEN", "feedrate:tasks"}), 1);
  const Reply reply = stream() ? server_->command({"XRANGE", "feedrate:tasks", "-", "+"})
                               : server_->command({"LRANGE", "feedrate:tasks", "0", "-1"});
  const redisReply* left = stream() ? reply->element[0]->element[1]->element[1] : reply->element[0];
  EXPECT_EQ(std::string(left->str, left->len), foreign);
  EXPECT_EQ(keys(), std::set<std::string>{"feedrate:tasks"});
}

INSTANTIATE_TEST_SUITE_P(Queues, SharedRedis, testing::Values("redis_list", "redis_stream"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::cli_test
