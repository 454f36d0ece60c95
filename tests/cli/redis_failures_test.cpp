// A user's Redis server that rejects passwords, dies, fills up or hangs: the cell fails with the server's message, and
// the other cells continue.
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

constexpr int kCrash = 128;  // exit codes starting at this value mean signals

Words run_list(const RedisServer& server, Words more = {}) {
  Words words{"run",       "--queue", "redis_list", "--device", "cpu",     "--json",
              "--seconds", "60",      "--warmup",   "0",        "--redis", server.url()};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
/// Waits until workers call BRPOP or XREADGROUP, which no client calls before the cell.
bool await_cell(RedisServer& server) {
  return await([&] { return server.calls_of("brpop") > 0 || server.calls_of("xreadgroup") > 0; });
}

/// The only row that `run --json` printed.
Json row_of(const Process& process) {
  const auto rows = measured_in(process.out());
  EXPECT_EQ(rows.size(), 1u) << process.err();
  return rows.empty() ? Json{{"status", ""}, {"reason", ""}} : rows.front();
}
void expect_failed(const Json& row, const Words& said) {
  EXPECT_EQ(row.at("status"), "failed");
  EXPECT_FALSE(row.contains("figures"));
  const std::string reason = row.at("reason");
  for (const auto& word : said) EXPECT_NE(reason.find(word), std::string::npos) << word << " in: " << reason;
}

class RedisFailures : public testing::Test {
 protected:
  void SetUp() override { FEEDRATE_NEEDS_REDIS(); }
};

TEST_F(RedisFailures, ServerKilledMidRunFailsTheRow) {
  // With a window of 1 the producer mostly waits for a free slot and sends nothing to the server.
  for (const auto& [queue, window] : {std::pair{"redis_list", "256"}, {"redis_stream", "256"}, {"redis_list", "1"}}) {
    RedisServer server;
    Workplace place;
    const auto process = place.start({"run", "--queue", queue, "--window", window, "--device", "cpu", "--json",
                                      "--seconds", "60", "--watchdog", "5", "--redis", server.url()});
    ASSERT_TRUE(await_cell(server)) << process->err();
    server.process().signal(SIGKILL);
    EXPECT_EQ(process->wait(), 1) << queue << " window " << window << process->err();
    expect_failed(row_of(*process), {server.url()});
  }
}

TEST_F(RedisFailures, ServerKilledDuringLimitsIsReported) {
  RedisServer server;
  Workplace place;
  const auto process = place.start(run_list(server));
  ASSERT_TRUE(await([&] { return server.calls_of("lpush") > 0; }));
  server.process().signal(SIGKILL);
  EXPECT_EQ(process->wait(), 1);
  EXPECT_NE((process->err() + process->out()).find(server.url()), std::string::npos)
      << process->err() << process->out();
}

TEST_F(RedisFailures, ServerKilledMidSweepDoesNotFailOtherCells) {
  RedisServer server;
  Workplace place;
  place.write("s.json", R"({"axes": {"queue": "null,host_polled,redis_list,redis_stream", "payload": "64,128"},
                            "run": {"seconds": 0.3, "warmup": 0, "watchdog": 5}})");
  const auto process = place.start({"sweep", "s.json", "--out", "out", "--device", "cpu", "--redis", server.url()});
  ASSERT_TRUE(await_cell(server)) << process->err();
  server.process().signal(SIGKILL);
  EXPECT_EQ(process->wait(), 1) << process->err();
  EXPECT_NE(process->err().find(" cells failed; first failure: "), std::string::npos) << process->err();
  const auto cells = cells_of(place / "out" / "rows.jsonl");
  EXPECT_EQ(cells.size(), 8u);
  int failed = 0;
  for (const Json& cell : cells) {
    const std::string queue = cell.at("params").at("queue");
    if (cell.at("status") == "failed") {
      ++failed;
      expect_failed(cell, {"edis"});
      EXPECT_TRUE(queue.starts_with("redis")) << queue << cell.at("reason");
    } else if (!queue.starts_with("redis")) {
      EXPECT_NE(cell.at("status"), "skipped");
      expect_clean(cell);
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(place.run({"validate", "out/rows.jsonl"}).code, 0);
}

TEST_F(RedisFailures, KilledPrivateServerIsReplaced) {
  Workplace place;
  place.write("s.json", R"({"axes": {"queue": "redis_list", "payload": "64,128,256"},
                            "run": {"seconds": 1, "warmup": 0, "watchdog": 5}})");
  const auto process = place.start({"sweep", "s.json", "--out", "out", "--device", "cpu"});
  ASSERT_TRUE(await([&] { return process->err().find("[1/3]") != std::string::npos; })) << process->err();
  const auto servers = place.private_servers();
  ASSERT_EQ(servers.size(), 1u);
  // A server that dies between two cells is replaced before the second cell begins, and no cell fails. So wait until
  // a cell is running.
  RedisClient client;
  ASSERT_TRUE(client.connect(place.private_socket()));
  const long long before = client.calls_of("brpop");
  ASSERT_TRUE(await([&] { return client.calls_of("brpop") > before; })) << process->err();
  kill(servers.front(), SIGKILL);
  EXPECT_EQ(process->wait(), 1) << process->err();
  EXPECT_NE(process->err().find(" cells failed; first failure: "), std::string::npos) << process->err();
  const auto cells = cells_of(place / "out" / "rows.jsonl");
  ASSERT_EQ(cells.size(), 3u);
  expect_clean(cells[0]);
  expect_failed(cells[1], {"redis.sock"});  // interrupted by the kill
  expect_clean(cells[2]);
}

TEST_F(RedisFailures, ServerFullMidRunIsReportedAsOom) {
  RedisServer server;
  Workplace place;
  const auto process = place.start(run_list(server));
  ASSERT_TRUE(await_cell(server)) << process->err();
  server.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  server.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(process->wait(), 1) << process->err();
  expect_failed(row_of(*process), {"Redis", "OOM command not allowed"});
}

TEST_F(RedisFailures, ProducersWithAMemoryLimitDoNotFillTheServer) {
  for (const char* queue : {"redis_list", "redis_stream"}) {
    RedisServer server({"--maxmemory", "24mb"});
    Workplace place;
    // Without a memory limit, 128 MiB would be in flight.
    Words words{"run",       "--queue", queue,        "--device", "cpu",         "--json", "--redis",   server.url(),
                "--payload", "64Ki",    "--window",   "2048",     "--producers", "1",      "--workers", "1",
                "--batch",   "16",      "--messages", "2000",     "--warmup",    "0",      "--pack",    "1"};
    const Outcome full = place.run(words);
    EXPECT_EQ(full.code, 1) << full.out;
    EXPECT_NE(full.out.find("OOM"), std::string::npos) << full.out;
    words.insert(words.end(), {"--memory-percent", "50"});
    const Outcome watched = place.run(words);
    EXPECT_EQ(watched.code, 0) << watched.out << watched.err;
    const auto rows = measured_in(watched.out);
    ASSERT_EQ(rows.size(), 1u);
    expect_clean(rows.front());
  }
}

TEST_F(RedisFailures, ServerFullFromTheStartIsReportedAsOom) {
  RedisServer server({"--maxmemory", "2mb", "--maxmemory-policy", "noeviction"});
  Workplace place;
  const auto process = place.start(run_list(server, {"--payload", "64Ki"}));
  const int code = process->wait();
  EXPECT_GT(code, 0);
  EXPECT_LT(code, kCrash);
  EXPECT_NE((process->err() + process->out()).find("OOM command not allowed"), std::string::npos) << process->err();
}

TEST_F(RedisFailures, FullServerDoesNotFailOtherCells) {
  RedisServer server({"--maxmemory", "2mb", "--maxmemory-policy", "noeviction"});
  Workplace place;
  place.write("s.json", R"({"axes": {"queue": "host_polled,redis_stream", "payload": "64Ki"},
                            "run": {"seconds": 0.2, "warmup": 0, "watchdog": 5}})");
  const Outcome outcome = place.run({"sweep", "s.json", "--out", "out", "--device", "cpu", "--redis", server.url()});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const auto cells = cells_of(place / "out" / "rows.jsonl");
  EXPECT_EQ(cells.size(), 2u);
  for (const Json& cell : cells) {
    if (cell.at("params").at("queue") == "host_polled") {
      expect_clean(cell);
    } else {
      expect_failed(cell, {"OOM command not allowed"});
    }
  }
}

TEST_F(RedisFailures, HangingServerFailsARunAndIsUnreachableForTheNext) {
  RedisServer server;
  Workplace place;
  const auto process = place.start(run_list(server, {"--watchdog", "1"}));
  // Messages must be under way: while threads still connect, they report the server themselves.
  ASSERT_TRUE(await([&] { return server.calls_of("brpop") > 50; })) << process->err();
  server.process().signal(SIGSTOP);
  const auto next = place.start(run_list(server));
  EXPECT_EQ(process->wait(), 1) << process->err();
  expect_failed(row_of(*process), {"watchdog: no result for 1 s", "missing"});
  EXPECT_EQ(next->wait(), 2);
  EXPECT_NE(next->err().find("--redis"), std::string::npos) << next->err();
}

TEST_F(RedisFailures, PasswordsAreCheckedBeforeAnythingRuns) {
  RedisServer server({}, "sesame");
  const std::string wrong = "unix://:simsim@" + server.socket(), none = "unix://" + server.socket();
  for (const auto& [url, said] : {std::pair{wrong, "WRONGPASS"}, {none, "NOAUTH"}}) {
    for (const Words& words : {Words{"run", "--queue", "redis_list"}, {"sweep", "s.json"}, {"worker"}, {"limits"}}) {
      Workplace place;
      place.write("s.json", R"({"axes": {"queue": "redis_list"}})");
      Words arguments = words;
      arguments.insert(arguments.end(), {"--device", "cpu", "--redis", url});
      const Outcome outcome = place.run(arguments);
      EXPECT_EQ(outcome.code, 2) << words[0];
      EXPECT_NE(outcome.err.find(said), std::string::npos) << words[0] << ": " << outcome.err;
      EXPECT_NE(outcome.err.find("--redis"), std::string::npos) << words[0] << ": " << outcome.err;
      EXPECT_EQ(outcome.err.find("simsim"), std::string::npos) << "the output contains the password";
      EXPECT_EQ(place.contents(), Words{"s.json"}) << words[0];
    }
  }
}

TEST_F(RedisFailures, CorrectPasswordWorksAndIsNotShown) {
  RedisServer server({}, "sesame");
  Workplace place;
  const Outcome outcome = place.run({"run", "--queue", "redis_list", "--device", "cpu", "--json", "--messages", "1000",
                                     "--redis", server.url(), "--out", "rows.jsonl"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_clean(measured_in(outcome.out).at(0));
  EXPECT_EQ((outcome.out + outcome.err + read_text(place / "rows.jsonl")).find("sesame"), std::string::npos)
      << "the output contains the password";
}

}  // namespace
}  // namespace feedrate::cli_test
