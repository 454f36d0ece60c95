// Standard streams that are closed or full, or whose reader has exited: the command still does its work.
#include <map>

#include "feedrate/tensors.hpp"
#include "tests/cli/feedrate_process.hpp"
#include "tests/cli/task_format.hpp"

namespace feedrate::cli_test {
namespace {

class Streams : public testing::Test {
 protected:
  /// Starts the executable with shell redirections of its streams, such as "2>/dev/full".
  std::unique_ptr<Process> start(Words words, const std::string& redirections) {
    words.insert(words.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" " + redirections, executable()});
    return std::make_unique<Process>(words, place_.path(), place_ / ("streams" + std::to_string(started_++)));
  }
  int run(const Words& words, const std::string& redirections) { return start(words, redirections)->wait(); }

  Workplace place_;
  int started_ = 0;
};

TEST_F(Streams, ClosedStreamsAreNotReusedForFiles) {
  place_.write("s.json", R"({"axes": {"queue": "null,host_polled"}, "run": {"messages": 200, "warmup": 0}})");
  for (const char* closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    fs::remove_all(place_ / "out");
    EXPECT_EQ(run({"sweep", "s.json", "--device", "cpu", "--floor-rounds", "0", "--out", "out"}, closed), 0) << closed;
    const auto rows = rows_of(read_text(place_ / "out" / "rows.jsonl"));  // throws if a log line is among the rows
    EXPECT_GE(rows.size(), 3u) << closed;                                 // more if a disturbed cell was repeated
  }
  EXPECT_EQ(run({"run", "--no-such-option"}, "<&- >&- 2>&-"), 2);
}

TEST_F(Streams, UnwritableStderrKeepsTheExitCode) {
  for (const char* nowhere : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(run({"run", "--no-such-option"}, nowhere), 2) << nowhere;
  }
  EXPECT_EQ(run({"validate", "missing.jsonl"}, "2>/dev/full"), place_.run({"validate", "missing.jsonl"}).code);
  EXPECT_EQ(
      run({"run", "--queue", "null", "--device", "cpu", "--messages", "100", "--warmup", "0", "--floor-rounds", "0"},
          "2>/dev/full"),
      0);
}

TEST_F(Streams, LostOutputIsAnError) {
  const auto full = start({"list"}, ">/dev/full");
  EXPECT_EQ(full->wait(), 1);
  EXPECT_NE(full->err().find("No space left on device"), std::string::npos) << full->err();
  // No error is printed if the reader has closed the pipe.
  Process gone(
      {"/bin/bash", "-c", "{ sleep 0.1; exec \"$0\" list --json; } | true; exit ${PIPESTATUS[0]}", executable()},
      place_.path(), place_ / "gone");
  EXPECT_EQ(gone.wait(), 1);
  EXPECT_EQ(gone.err(), "");
}

TEST_F(Streams, FileSizeLimitCausesErrorsNotCrashes) {
  // The limit on file sizes also applies to memfds.
  Process store({"/bin/sh", "-c", "ulimit -f 16384; exec \"$0\" store serve --device cpu --memory 512Mi --socket s",
                 executable()},
                place_.path(), place_ / "limited");
  ASSERT_TRUE(await([&] { return fs::exists(place_ / "s"); }));
  tensors::Store connected(place_ / "s");
  EXPECT_THROW(connected.create("large", {tensors::Dtype::u8, {100 << 20}}), std::runtime_error);
  EXPECT_EQ(Json::parse(connected.status()).at("tensors"), 0);
  store.signal(SIGTERM);
  EXPECT_EQ(store.wait(), 0);
  Process run({"/bin/sh", "-c",
               "ulimit -f 1; exec \"$0\" run --queue null --device cpu --messages 100 --warmup 0 "
               "--floor-rounds 0 --out rows.jsonl",
               executable()},
              place_.path(), place_ / "rows");
  EXPECT_EQ(run.wait(), 1);
  EXPECT_NE(run.err().find("could not write a row: File too large"), std::string::npos) << run.err();
}

TEST_F(Streams, StdoutAcceptsRows) {
  Process run({"/bin/sh", "-c",
               "\"$0\" run --queue null --device cpu --messages 100 --warmup 0 --floor-rounds 0 "
               "--out /dev/stdout | cat",
               executable()},
              place_.path(), place_ / "piped");
  EXPECT_EQ(run.wait(), 0);
  EXPECT_NE(run.out().find("\"kind\":\"cell\""), std::string::npos) << run.err();
}

/// The log of a service: full from the start, or a pipe whose reader exits after the first line.
class Logs : public Streams, public testing::WithParamInterface<std::string> {
 protected:
  std::unique_ptr<Process> serve(const Words& words) {
    if (GetParam() == "full") return start(words, "2>/dev/full");
    EXPECT_EQ(mkfifo((place_ / "log").c_str(), 0600), 0);
    Process reader({"/usr/bin/head", "-n", "1", "log"}, place_.path(), place_ / "head");
    auto process = start(words, "2>log");
    EXPECT_EQ(reader.wait(), 0);
    return process;
  }
};

TEST_P(Logs, StoreSurvivesLostLog) {
  const std::string socket = place_ / "s";
  const auto store = serve({"store", "serve", "--socket", socket, "--memory", "16Mi", "--device", "cpu"});
  ASSERT_TRUE(await([&] { return fs::exists(socket); }));
  const pid_t client = fork();
  if (client == 0) {
    tensors::Store connected(socket);
    const auto tensor = connected.create("weights", {tensors::Dtype::f32, {4}});
    _exit(0);  // its lease ends, and the store logs a line
  }
  waitpid(client, nullptr, 0);
  tensors::Store connected(socket);
  EXPECT_TRUE(await([&] { return connected.stat("weights").leases == 0; }));
  EXPECT_EQ(connected.get("weights").bytes(), 16u);
  store->signal(SIGTERM);
  EXPECT_EQ(store->wait(), 0);
}

TEST_P(Logs, WorkerSurvivesLostLog) {
  FEEDRATE_NEEDS_REDIS();
  RedisServer server;
  const auto worker =
      serve({"worker", "--queue", "redis_reliable", "--device", "cpu", "--redis", server.url(), "--prefix", "t"});
  server.command({"LPUSH", "t:tasks", "no message"});  // the worker logs a warning
  server.command({"LPUSH", "t:tasks", encode(1, {1, 2})});
  EXPECT_TRUE(await([&] { return server.integer({"LLEN", "t:results:0"}) == 1; }));
  worker->signal(SIGTERM);
  EXPECT_EQ(worker->wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Services, Logs, testing::Values("full", "reader_gone"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::cli_test
