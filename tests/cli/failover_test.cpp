// Replication is asynchronous, so a failover loses the tasks that only the master had. With WAIT a client can find out
// which tasks these are.
#include "tests/cli/delivery.hpp"

namespace feedrate::cli_test {
namespace {

class FailoverTest : public DeliveryTest {
 protected:
  void SetUp() override {
    DeliveryTest::SetUp();
    if (IsSkipped()) return;
    const int port = free_port();
    master_.emplace(Words{"--port", std::to_string(port), "--repl-diskless-sync-delay", "0"});
    server_.emplace(Words{"--replicaof", "127.0.0.1 " + std::to_string(port)});
    ASSERT_TRUE(await([&] { return replication().find("master_link_status:up") != std::string::npos; }));
  }
  std::string replication() {
    const Reply reply = server_->command({"INFO", "replication"});
    return {reply->str, reply->len};
  }
  void send(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t n = first; n < first + count; ++n) {
      const Reply reply = add_task(*master_, GetParam(), encode(id_of(0, n), {1}));
      ASSERT_TRUE(reply && reply->type != REDIS_REPLY_ERROR) << "the master did not accept task " << n;
    }
  }
  std::optional<RedisServer> master_;  // server_ is its replica
};

TEST_P(FailoverTest, FailoverLosesOnlyTasksThatWaitDidNotConfirm) {
  constexpr std::uint64_t kSafe = 1000, kAlone = 500;
  send(0, kSafe);
  EXPECT_EQ(master_->integer({"WAIT", "1", "5000"}), 1) << "the replica must have these tasks";
  // Cut the replica off from the master, which still accepts tasks.
  server_->command({"REPLICAOF", "127.0.0.1", std::to_string(free_port())});
  ASSERT_TRUE(await([&] { return replication().find("master_link_status:down") != std::string::npos; }));
  send(kSafe, kAlone);
  EXPECT_EQ(master_->integer({"WAIT", "1", "100"}), 0) << "only the master may have these tasks";
  master_->process().signal(SIGKILL);
  master_->process().wait();
  server_->command({"REPLICAOF", "NO", "ONE"});

  const auto promoted = std::chrono::steady_clock::now();
  const auto worker = start();
  std::multimap<std::uint64_t, Message> found;
  EXPECT_TRUE(await([&] {
    found = results();
    return found.size() >= kSafe;
  })) << worker->err();
  const double recovery = Seconds(std::chrono::steady_clock::now() - promoted).count();
  push(encode(id_of(1, 0), {1}));  // after all other tasks
  EXPECT_TRUE(await([&] { return server_->integer({"EXISTS", "t:results:1"}) == 1; })) << worker->err();
  found = results();
  std::set<std::uint64_t> safe, alone;
  for (const auto& [id, message] : found) (id < id_of(0, kSafe) ? safe : alone).insert(id);
  const auto tally = [&](std::uint64_t sent, const std::set<std::uint64_t>& ids) {
    const auto received = std::ranges::count_if(found, [&](const auto& result) { return ids.contains(result.first); });
    return Ledger::Tally{.sent = sent,
                         .answered = ids.size(),
                         .lost = sent - ids.size(),
                         .duplicated = static_cast<std::uint64_t>(received) - ids.size()};
  };
  record("failover, tasks that WAIT confirmed", tally(kSafe, safe), recovery);
  record("failover, tasks that only the master had", tally(kAlone, alone));
  EXPECT_EQ(safe.size(), kSafe);
  EXPECT_EQ(alone.size(), 0u) << "a task that only the master had was served";
}

INSTANTIATE_TEST_SUITE_P(Queues, FailoverTest, kQueuesThatKeep, kQueueNames);

}  // namespace
}  // namespace feedrate::cli_test
