// The private server that feedrate starts leaves no process and no folder behind, however feedrate ends.
#include <map>
#include <set>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class PrivateRedis : public testing::Test {
 protected:
  void SetUp() override { FEEDRATE_NEEDS_REDIS(); }

  /// Starts a long run and returns once its second cell runs or, if `early`, once its server runs.
  std::unique_ptr<Process> start(bool early) {
    Words words{"sweep", "s.json", "--out", "out", "--device", "cpu", "--seconds", early ? "60" : "0.05"};
    place_.write(
        "s.json",
        R"({"axes": {"queue": "redis_list", "payload": "pow2:4..12"}, "run": {"repetitions": 90, "warmup": 0}})");
    auto process = place_.start(words);
    const bool began = await([&] {
      return !place_.private_servers().empty() && (early || process->err().find("[2/") != std::string::npos);
    });
    EXPECT_TRUE(began) << process->err();
    return process;
  }
  void expect_nothing_left() {
    EXPECT_TRUE(await([&] { return place_.private_servers().empty(); })) << "a server is still running";
    EXPECT_TRUE(place_.temporary_empty()) << "a folder is left behind";
  }
  Workplace place_;
};

TEST_F(PrivateRedis, ServerEndsWithARun) {
  const Outcome outcome = place_.run({"run", "--queue", "redis_stream", "--device", "cpu", "--messages", "100"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_nothing_left();
}

TEST_F(PrivateRedis, EachPointHasItsOwnPersistenceAndCountsTheServersCores) {
  place_.write("s.json", R"({"axes": {"queue": ["redis_list", "redis_stream"], "payload": 64, "window": 16, "batch": 8,
                             "aof": ["no", "everysec", "always"]}, "run": {"messages": 300, "warmup": 0}})");
  const Outcome outcome = place_.run({"sweep", "s.json", "--device", "cpu", "--out", "out"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  std::map<std::string, std::set<bool>> durable;
  for (const Json& row : cells_of(place_ / "out" / "rows.jsonl")) {
    expect_clean(row);
    durable[row["params"]["aof"]].insert(row["cost"]["durable"].get<bool>());
    EXPECT_GT(row["cost"]["service_cores"], 0);
    EXPECT_LT(row["cost"]["service_cores"], 8);
  }
  EXPECT_EQ(durable,
            (std::map<std::string, std::set<bool>>{{"no", {false}}, {"everysec", {false}}, {"always", {true}}}));
  expect_nothing_left();
}

TEST_F(PrivateRedis, TemporaryFolderThatCannotHoldASocketIsReported) {
  const std::string missing = place_ / "missing", longer = place_ / std::string(100, 'd');
  fs::create_directory(longer);
  const Words words{"run", "--queue", "redis_stream", "--device", "cpu", "--messages", "100"};
  Outcome outcome = place_.run(words, {{"TMPDIR", missing}});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("$TMPDIR: invalid value '" + missing), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("No such file or directory"), std::string::npos) << outcome.err;
  outcome = place_.run(words, {{"TMPDIR", longer}});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("a path of at most"), std::string::npos) << outcome.err;
}

TEST_F(PrivateRedis, ServerEndsAfterInterruptOfTheProcessGroup) {
  for (const bool early : {true, false}) {
    const auto process = start(early);
    process->signal_group(SIGINT);
    EXPECT_EQ(process->wait(), 130) << process->err();
    expect_nothing_left();
    fs::remove_all(place_ / "out");
  }
}

TEST_F(PrivateRedis, ServerEndsAfterSigterm) {
  const auto process = start(false);
  process->signal(SIGTERM);
  const int code = process->wait();
  EXPECT_TRUE(code == 130 || code == 143) << code << process->err();
  expect_nothing_left();
}

TEST_F(PrivateRedis, ServerDiesWithAKilledProcess) {
  const auto process = start(false);
  process->signal(SIGKILL);
  EXPECT_EQ(process->wait(), 128 + SIGKILL);
  EXPECT_TRUE(await([&] { return place_.private_servers().empty(); })) << "a server is still running";
}

}  // namespace
}  // namespace feedrate::cli_test
