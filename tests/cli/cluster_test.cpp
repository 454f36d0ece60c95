// Tests against a Redis Cluster of real servers.
#include "tests/cli/task_format.hpp"

namespace feedrate::cli_test {
namespace {

/// Three masters, each with a third of the slots, and `replicas` replicas, one per master.
class Cluster {
 public:
  explicit Cluster(unsigned replicas = 0) {
    for (unsigned i = 0; i < kMasters + replicas; ++i) {
      ports_.push_back(free_port());
      servers_.push_back(std::make_unique<RedisServer>(
          Words{"--port", std::to_string(ports_[i]), "--cluster-enabled", "yes", "--cluster-config-file", "nodes",
                "--cluster-port", std::to_string(free_port()), "--cluster-node-timeout", "500", "--bind", "127.0.0.1",
                "--cluster-announce-ip", "127.0.0.1"}));
    }
    for (unsigned i = 0; i < kMasters; ++i) {
      const unsigned from = 16384 * i / kMasters, to = 16384 * (i + 1) / kMasters - 1;
      server(i).command({"CLUSTER", "ADDSLOTSRANGE", std::to_string(from), std::to_string(to)});
      server(i).command({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    }
    for (unsigned i = 1; i < servers_.size(); ++i) {
      const Reply bus = server(i).command({"CONFIG", "GET", "cluster-port"});
      server(0).command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(ports_[i]), bus->element[1]->str});
    }
    EXPECT_TRUE(await([&] { return all([&](RedisServer& each) { return knows_all(each); }); }))
        << "the servers did not form a cluster";
    for (unsigned i = kMasters; i < servers_.size(); ++i) {
      const Reply id = server(i - kMasters).command({"CLUSTER", "MYID"});
      server(i).command({"CLUSTER", "REPLICATE", id->str});
    }
    EXPECT_TRUE(await([&] {
      return all([](RedisServer& each) { return info(each, "CLUSTER").find("cluster_state:ok") != std::string::npos; });
    }));
    for (unsigned i = 0; i < replicas; ++i) {
      EXPECT_TRUE(await([&] { return replication(i).find("state=online") != std::string::npos; })) << replication(i);
    }
  }
  RedisServer& server(unsigned i) { return *servers_[i]; }
  /// URL that lists all servers, as users of a cluster write it.
  std::string url() const {
    std::string url = "redis://";
    for (const int port : ports_) url += (url.ends_with('/') ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
    return url;
  }
  /// Index of the master that holds the key.
  unsigned master_of(const std::string& key) {
    const long long slot = server(0).integer({"CLUSTER", "KEYSLOT", key});
    return static_cast<unsigned>(((slot + 1) * kMasters - 1) / 16384);
  }
  /// Sends the command to one server after another until one accepts it.
  Reply command(const Words& words) {
    for (const auto& each : servers_) {
      if (each->process().ended()) continue;
      Reply reply = each->command(words);
      if (reply && reply->type != REDIS_REPLY_ERROR) return reply;
    }
    return nullptr;
  }
  long long integer(const Words& words) {
    const Reply reply = command(words);
    return reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
  }
  static constexpr unsigned kMasters = 3;

 private:
  static std::string info(RedisServer& server, const char* which) {
    const Reply reply =
        which == std::string("CLUSTER") ? server.command({"CLUSTER", "INFO"}) : server.command({"INFO", which});
    return reply && reply->str != nullptr ? std::string(reply->str, reply->len) : "";
  }
  std::string replication(unsigned i) { return info(server(i), "replication"); }
  bool knows_all(RedisServer& each) const {
    return info(each, "CLUSTER").find("cluster_known_nodes:" + std::to_string(servers_.size())) != std::string::npos;
  }
  template <class Test>
  bool all(Test&& test) {
    return std::all_of(servers_.begin(), servers_.end(), [&](const auto& each) { return test(*each); });
  }
  std::vector<int> ports_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

std::string partition(unsigned i) { return "jobs:{jobs." + std::to_string(i) + "}"; }

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override { FEEDRATE_NEEDS_REDIS(); }
  std::unique_ptr<Process> start(const std::string& url, const Words& more = {}, const char* partitions = "6") {
    return start_worker(place_,
                        {"--device", "cpu", "--redis", url, "--prefix", "jobs", "--queue", "redis_reliable", "--lease",
                         "1", "--partitions", partitions},
                        more);
  }
  Workplace place_;
};

TEST_F(ClusterTest, BenchmarkUsesAllMastersAndLeavesNoKeys) {
  Cluster cluster;
  for (const char* queue : {"redis_list", "redis_pubsub", "redis_reliable", "redis_priority", "redis_stream"}) {
    const Outcome outcome =
        place_.run({"run",         "--json",       "--device", "cpu",         "--queue",  queue,       "--redis",
                    cluster.url(), "--partitions", "8",        "--producers", "8",        "--workers", "2",
                    "--messages",  "800",          "--warmup", "0",           "--window", "16"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const Json& row : measured_in(outcome.out)) {
      if (row.at("kind") == "cell") expect_clean(row);
    }
  }
  for (unsigned i = 0; i < Cluster::kMasters; ++i) {
    EXPECT_GT(cluster.server(i).calls_of("lpush"), 0) << "master " << i << " received no tasks";
    EXPECT_EQ(cluster.server(i).integer({"DBSIZE"}), 0) << "master " << i;
  }
}

TEST_F(ClusterTest, WorkerServesEveryPartitionAndDeadLettersStayInTheirPartition) {
  Cluster cluster;
  const auto worker = start(cluster.url());
  std::set<unsigned> masters;
  for (unsigned i = 0; i < 6; ++i) {
    masters.insert(cluster.master_of(partition(i)));
    for (std::uint64_t n = 0; n < 5; ++n) cluster.command({"LPUSH", partition(i) + ":tasks", encode(n, {i})});
  }
  EXPECT_GT(masters.size(), 1u);
  for (unsigned i = 0; i < 6; ++i) {
    EXPECT_TRUE(await([&] { return cluster.integer({"LLEN", partition(i) + ":results:0"}) == 5; })) << worker->err();
  }
  cluster.command({"LPUSH", partition(4) + ":tasks", "garbage"});
  EXPECT_TRUE(await([&] { return cluster.integer({"XLEN", partition(4) + ":dead"}) == 1; })) << worker->err();
  const Outcome outcome = place_.run({"dlq", "list", "--json", "--redis", cluster.url(), "--prefix", partition(4)});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(rows_of(outcome.out).size(), 1u);
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0) << worker->err();
  const Outcome refused = place_.run({"worker", "--device", "cpu", "--redis", cluster.url(), "--prefix", "jobs"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--prefix"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("hash tag"), std::string::npos) << refused.err;
}

TEST_F(ClusterTest, WorkerServesReplicaAfterMasterDies) {
  Cluster cluster(3);
  const auto worker = start(cluster.url());
  const unsigned victim = cluster.master_of(partition(0));
  for (std::uint64_t n = 0; n < 20; ++n) cluster.command({"LPUSH", partition(0) + ":tasks", encode(n, {1})});
  ASSERT_TRUE(await([&] { return cluster.integer({"LLEN", partition(0) + ":results:0"}) == 20; })) << worker->err();
  // Replicated tasks are safe. Replication is asynchronous, so a client that must not lose a task waits for it.
  EXPECT_EQ(cluster.server(victim).integer({"WAIT", "1", "5000"}), 1);
  cluster.server(victim).process().signal(SIGKILL);
  cluster.server(victim).process().wait();
  ASSERT_TRUE(await([&] {
    return cluster.integer({"LPUSH", partition(0) + ":tasks", encode(20, {1})}) > 0;
  })) << "no replica was promoted";
  for (std::uint64_t n = 21; n < 40; ++n) cluster.command({"LPUSH", partition(0) + ":tasks", encode(n, {1})});
  std::set<std::uint64_t> ids;
  EXPECT_TRUE(await([&] {
    const Reply reply = cluster.command({"LRANGE", partition(0) + ":results:0", "0", "-1"});
    for (std::size_t i = 0; reply && i < reply->elements; ++i) {
      ids.insert(decode({reply->element[i]->str, reply->element[i]->len}).id);
    }
    return ids.size() == 40;
  })) << ids.size()
      << worker->err();
  EXPECT_FALSE(worker->ended()) << worker->err();
}

TEST_F(ClusterTest, SeveralServersWithoutClusterAreRejected) {
  const int port = free_port();
  RedisServer server({"--port", std::to_string(port)});
  const std::string one = "127.0.0.1:" + std::to_string(port);
  const Outcome outcome = place_.run({"worker", "--device", "cpu", "--redis", "redis://" + one + "," + one});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("Redis Cluster"), std::string::npos) << outcome.err;
  EXPECT_EQ(place_.run({"worker", "--device", "cpu", "--redis", "redis://" + one + ",b:70x0"}).code, 2);
}

/// A poisoned message in one partition must not affect messages in another.
TEST_F(ClusterTest, SuspectsOfEveryPartitionAreServedAlone) {
  RedisServer server;
  for (std::uint64_t id = 0; id < 5; ++id) server.command({"LPUSH", "jobs:{jobs.1}:tasks", encode(id, {1, 2, 3, 4})});
  server.command({"LPUSH", "jobs:{jobs.0}:tasks", encode(0, {0xFA17'0003, 0, 0, 0})});
  place_.use(with_additions());
  const auto worker = start(server.url(), {"--workload", "faulty", "--supervise"}, "2");
  EXPECT_TRUE(await([&] {
    return server.integer({"LLEN", "jobs:{jobs.0}:results:0"}) == 1 &&
           server.integer({"LLEN", "jobs:{jobs.1}:results:0"}) >= 5;
  })) << worker->err();
  EXPECT_EQ(server.integer({"XLEN", "jobs:{jobs.0}:dead"}), 1);
  EXPECT_EQ(server.integer({"XLEN", "jobs:{jobs.1}:dead"}), 0)
      << "a message of the other partition became a dead letter";
}

}  // namespace
}  // namespace feedrate::cli_test
