// `feedrate run`: the row of one point, the destination of the row, and the sources of the settings.
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class Run : public testing::Test {
 protected:
  Outcome run(Words more, const Environment& environment = {}) {
    const auto otherwise = [&more](const std::string& option, const std::string& value) {
      if (std::find(more.begin(), more.end(), option) == more.end()) more.insert(more.end(), {option, value});
    };
    otherwise("--queue", "null");
    otherwise("--messages", "1000");
    Words words = before_;
    words.insert(words.end(), {"run", "--device", "cpu", "--warmup", "0", "--json"});
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = place_.run(words, environment);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  }
  Json params(const Words& more, const Environment& environment = {}) {
    return measured_in(run(more, environment).out).at(0).at("params");
  }
  Words before_;  ///< words ahead of the subcommand
  Workplace place_;
};

TEST_F(Run, JsonRowsAreValid) {
  const Outcome outcome = run({"--queue", "host_polled", "--repetitions", "2"});
  const auto rows = measured_in(outcome.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NE(rows[0].at("id"), rows[1].at("id"));
  for (const Json& row : rows) expect_clean(row);
  place_.write("rows.jsonl", outcome.out);
  const Outcome validation = place_.run({"validate", "rows.jsonl"});
  EXPECT_EQ(validation.code, 0) << validation.err;
  EXPECT_NE(validation.out.find("3 rows, 0 invalid"), std::string::npos) << validation.out;
}

TEST_F(Run, EveryMessageOfAllProducersIsCounted) {
  for (const char* queue : {"null", "host_polled", "gpu_ring"}) {
    const auto row = measured_in(run({"--queue", queue, "--producers", "2", "--messages", "10001"}).out).at(0);
    expect_clean(row);
    EXPECT_EQ(row.at("details").at("counts").at("sent"), 10001) << queue;
  }
}

TEST_F(Run, OutOptionAppendsTheSameRow) {
  const auto first = run({"--out", "rows.jsonl"}), second = run({"--out", "rows.jsonl", "--payload", "128"});
  EXPECT_EQ(read_text(place_ / "rows.jsonl"), first.out + second.out);
}

TEST_F(Run, TraceShowsTheStagesOfEverySampledMessage) {
  const auto row = measured_in(run({"--queue", "host_polled", "--window", "1", "--trace", "trace.json"}).out).at(0);
  expect_clean(row);
  const Json trace = Json::parse(read_text(place_ / "trace.json"));
  std::map<std::string, std::uint64_t> begun;
  double total_us = 0;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "b") ++begun[event.at("name").get<std::string>()];
    if (phase == "b" || phase == "e") total_us += (phase == "e" ? 1 : -1) * event.at("ts").get<double>();
  }
  for (const char* stage : {"kernel_end", "collected"}) {
    EXPECT_EQ(begun[stage], row.at("details").at("stages_ns").at(stage).at("samples")) << stage;
  }
  const Json& latency = row.at("figures").at("latency_ns");
  const double whole_us = latency.at("mean").get<double>() * latency.at("samples").get<double>() / 1e3;
  // Stages of different messages overlap; stages of one message do not.
  EXPECT_NEAR(total_us, whole_us, 0.05 * whole_us);
  EXPECT_EQ(trace.at("otherData").at("params"), row.at("params"));
}

TEST_F(Run, TableShowsThePointAndItsFigures) {
  const Outcome outcome = place_.run({"run", "--queue", "host_polled", "--device", "cpu", "--messages", "1000"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* said : {"queue=host_polled", "throughput", "latency", "p99.9", "0 lost"}) {
    EXPECT_NE(outcome.out.find(said), std::string::npos) << said << " in:\n" << outcome.out;
  }
}

TEST_F(Run, OutputOfRepetitionsEndsWithTheirMedianAndRange) {
  const Outcome outcome = place_.run({"run", "--queue", "host_polled", "--device", "cpu", "--seconds", "0",
                                      "--messages", "3000", "--repetitions", "3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("3 repetitions, "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" to "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("not GPU results"), std::string::npos) << outcome.err;
}

TEST_F(Run, InterruptedRunWritesItsRow) {
  FEEDRATE_NEEDS_REDIS();
  RedisServer server;
  const auto process = place_.start({"run", "--queue", "redis_list", "--device", "cpu", "--json", "--seconds", "60",
                                     "--out", "rows.jsonl", "--redis", server.url()});
  ASSERT_TRUE(await([&] { return server.calls_of("brpop") > 0; })) << process->err();
  process->signal(SIGINT);
  EXPECT_EQ(process->wait(), 130) << process->err();
  const auto rows = cells_of(place_ / "rows.jsonl");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("status"), "invalid");
  EXPECT_EQ(rows[0].at("cause"), "interrupted");
  EXPECT_NE(rows[0].at("reason").get<std::string>().find("interrupted"), std::string::npos) << rows[0].at("reason");
  EXPECT_EQ(place_.run({"validate", "rows.jsonl"}).err, "");
}

TEST_F(Run, FlagOverridesEnvironmentWhichOverridesConfig) {
  place_.write("c.json", R"({"run": {"payload": 128, "batch": "16", "window": "1Ki"}, "sweep": {"seconds": 9}})");
  before_ = {"--config", "c.json"};
  const Json config = params({});
  EXPECT_EQ(config.at("payload_bytes"), 128);
  EXPECT_EQ(config.at("batch"), 16);
  EXPECT_EQ(config.at("window"), 1024);
  const Environment environment{{"FEEDRATE_PAYLOAD", "256"}, {"FEEDRATE_BATCH", "8"}};
  const Json both = params({}, environment);
  EXPECT_EQ(both.at("payload_bytes"), 256) << "the environment must override the config file";
  EXPECT_EQ(both.at("batch"), 8) << "the environment must override the config file";
  EXPECT_EQ(both.at("window"), 1024);
  const Json all = params({"--payload", "512"}, environment);
  EXPECT_EQ(all.at("payload_bytes"), 512);
  EXPECT_EQ(all.at("batch"), 8);
  EXPECT_EQ(all.at("window"), 1024);
}

TEST_F(Run, EnvironmentSetsOptionsAndTheConfigFile) {
  EXPECT_EQ(params({}, {{"FEEDRATE_PAYLOAD", "2Ki"}}).at("payload_bytes"), 2048);
  const std::string config = place_.write("c.json", R"({"run": {"payload": 192}})");
  EXPECT_EQ(params({}, {{"FEEDRATE_CONFIG", config}}).at("payload_bytes"), 192);
}

TEST_F(Run, EnvironmentSetsOptionsOfASweep) {
  place_.write("s.json", R"({"axes": {"queue": "null"}, "run": {"messages": 1000, "seed": 1, "warmup": 0}})");
  const Outcome outcome = place_.run({"sweep", "s.json", "--out", "o", "--device", "cpu"}, {{"FEEDRATE_SEED", "5"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(run_in(rows_of(read_text(place_ / "o" / "rows.jsonl"))).at("settings").at("seed"), 5);
}

TEST_F(Run, ValidateNamesTheInvalidLines) {
  Json row = measured_in(run({}).out).at(0);
  const std::string good = row.dump() + "\n";
  row["status"] = "splendid";
  const std::string wrong = row.dump() + "\n";
  place_.write("rows.jsonl", good + wrong + good.substr(0, 100));
  const Outcome outcome = place_.run({"validate", "rows.jsonl"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("3 rows, 2 invalid"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.err.find("rows.jsonl:1:"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("rows.jsonl:2:"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("rows.jsonl:3: not valid JSON"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace feedrate::cli_test
