// A worker as a service: metrics, health, log, restarts.
#include "tests/cli/metrics.hpp"
#include "tests/cli/task_format.hpp"

namespace feedrate::cli_test {
namespace {

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    FEEDRATE_NEEDS_REDIS();
    server_.emplace();
    if (!serves_metrics()) GTEST_SKIP() << "built without prometheus-cpp";
  }
  std::unique_ptr<Process> start(const Words& more) {
    return start_worker(place_,
                        {"--queue", "redis_reliable", "--device", "cpu", "--redis", server_->url(), "--prefix", "t",
                         "--workload", "faulty", "--lease", "1"},
                        more);
  }
  void push(std::uint64_t id, const std::vector<std::uint32_t>& words) {
    server_->command({"LPUSH", "t:tasks", encode(id, words)});
  }
  std::optional<RedisServer> server_;
  Workplace place_{with_additions()};
};

TEST_F(ServiceTest, MetricsCountServedFailedAndRetriedTasks) {
  const int port = free_port();
  const auto worker = start({"--metrics", "127.0.0.1:" + std::to_string(port), "--retry-after", "0.01", "--name", "w"});
  for (std::uint64_t id = 0; id < 10; ++id) push(id, {1, 2, 3, 4});
  push(10, {0xFA17'0001, 0, 0, 0});  // rejected by the workload
  push(11, {0xFA17'0002, 1, 0, 0});  // deferred by the workload once
  ASSERT_TRUE(await([&] { return server_->integer({"LLEN", "t:results:0"}) == 12; })) << worker->err();
  const std::string metrics = get(port, "/metrics");
  EXPECT_TRUE(metrics.starts_with("HTTP/1.1 200")) << metrics;
  EXPECT_EQ(value_of(metrics, "feedrate_tasks_served_total"), 13) << metrics;
  EXPECT_EQ(value_of(metrics, "feedrate_tasks_failed_total"), 1);
  EXPECT_EQ(value_of(metrics, "feedrate_tasks_retried_total"), 1);
  EXPECT_EQ(value_of(metrics, "feedrate_tasks_buried_total"), 1);
  EXPECT_EQ(value_of(metrics, "feedrate_dead_letters"), 1);
  EXPECT_EQ(value_of(metrics, "feedrate_queue_depth"), 0);
  EXPECT_EQ(value_of(metrics, "feedrate_workers"), 1);
  EXPECT_EQ(value_of(metrics, "feedrate_server_up"), 1);
  EXPECT_GE(value_of(metrics, "feedrate_batch_seconds_count"), 1);
  EXPECT_NE(metrics.find("feedrate_batch_seconds_bucket{worker=\"w\",le=\"+Inf\"}"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("# TYPE feedrate_tasks_served_total counter"), std::string::npos);
  EXPECT_NE(get(port, "/nothing").find(" 404 "), std::string::npos);
}

TEST_F(ServiceTest, HealthFollowsTheStateOfTheServer) {
  const int port = free_port();
  const auto worker = start({"--metrics", "127.0.0.1:" + std::to_string(port)});
  const auto healthy = [&] { return get(port, "/healthz").starts_with("HTTP/1.1 200"); };
  EXPECT_TRUE(await(healthy));
  server_->process().signal(SIGKILL);
  EXPECT_TRUE(await([&] { return get(port, "/healthz").starts_with("HTTP/1.1 503"); }));
  EXPECT_EQ(value_of(get(port, "/metrics"), "feedrate_server_up"), 0);
  server_->kill_and_start();
  EXPECT_TRUE(await(healthy)) << worker->err();
  EXPECT_GE(value_of(get(port, "/metrics"), "feedrate_reconnects_total"), 1);
}

TEST_F(ServiceTest, AddressInUseIsRejected) {
  const int port = free_port();
  const auto worker = start({"--metrics", std::to_string(port)});
  const Outcome outcome =
      place_.run({"worker", "--device", "cpu", "--redis", server_->url(), "--metrics", std::to_string(port)});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("--metrics"), std::string::npos) << outcome.err;
}

TEST_F(ServiceTest, LogIsJsonIfRequested) {
  const auto worker = start({"--log", "json", "--name", "a \"name\""});
  server_->command({"LPUSH", "t:tasks", "no message"});
  ASSERT_TRUE(await([&] { return worker->err().find("dropped") != std::string::npos; })) << worker->err();
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0);
  const auto lines = rows_of(worker->err());
  ASSERT_GE(lines.size(), 3u) << worker->err();
  for (const Json& line : lines) {
    EXPECT_TRUE(line.contains("time") && line.contains("message") && line["process"].is_number()) << line;
  }
  EXPECT_NE(lines[0]["message"].get<std::string>().find("a \"name\""), std::string::npos);
  EXPECT_EQ(lines[1]["level"], "warning");
}

TEST_F(ServiceTest, PasswordIsNotVisible) {
  server_.emplace(Words{}, "s3cret-word");
  for (const bool supervised : {false, true}) {
    const auto worker = start(supervised ? Words{"--supervise"} : Words{});
    EXPECT_TRUE(await([&] { return server_->integer({"ZCARD", "t:leases"}) == 1; })) << worker->err();
    // Only the worker and its child are checked, because the test's server has the password in its arguments as well.
    for (const pid_t id : processes_naming("s3cret-word")) {
      EXPECT_EQ(read_text(fs::path("/proc") / std::to_string(id) / "cmdline").find("worker"), std::string::npos) << id;
    }
    EXPECT_EQ(worker->err().find("s3cret-word"), std::string::npos);
    worker->signal(SIGTERM);
    EXPECT_EQ(worker->wait(), 0);
    server_->command({"DEL", "t:leases"});
  }
}

TEST_F(ServiceTest, SupervisedWorkerEndsWithItsSupervisor) {
  const auto worker = start({"--supervise", "--name", "s"});
  EXPECT_TRUE(await([&] { return server_->integer({"ZCARD", "t:leases"}) == 1; }));
  push(1, {0xFA17'0003, 0, 0, 0});
  EXPECT_TRUE(await([&] { return server_->integer({"LLEN", "t:results:0"}) == 1; })) << worker->err();
  EXPECT_EQ(server_->integer({"XLEN", "t:dead"}), 1);
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0) << worker->err();
  EXPECT_TRUE(await([&] { return processes_naming(server_->socket()).size() <= 1; }))
      << "a child process is still running";
}

/// Bundles start the worker this way on a host whose C library is too old.
TEST_F(ServiceTest, SupervisedWorkerStartedByTheLoaderIsRestarted) {
  const std::string maps = read_text("/proc/self/maps"), name = "/ld-linux";
  const std::size_t at = maps.find(name);
  ASSERT_NE(at, maps.npos);
  const std::size_t begin = maps.rfind(' ', at) + 1;
  const std::string loader = maps.substr(begin, maps.find('\n', at) - begin);
  Process worker({loader, with_additions(), "worker", "--queue", "redis_reliable", "--device", "cpu", "--redis",
                  server_->url(), "--prefix", "t", "--workload", "faulty", "--supervise"},
                 place_.path(), place_ / "loaded");
  EXPECT_TRUE(await([&] { return server_->integer({"ZCARD", "t:leases"}) == 1; })) << worker.err();
  push(1, {0xFA17'0003, 0, 0, 0});
  push(2, {1, 2, 3, 4});
  EXPECT_TRUE(await([&] { return server_->integer({"LLEN", "t:results:0"}) == 2; })) << worker.err();
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait(), 0) << worker.err();
}

}  // namespace
}  // namespace feedrate::cli_test
