// For invalid input the message names the option, the value and the allowed values, and feedrate exits with code 2
// before it runs or creates anything.
#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

struct BadInput {
  std::string name;
  Words arguments;
  Words said;               ///< strings that stderr must contain
  std::string spec = "";    ///< content of ./s.json
  std::string config = "";  ///< content of ./c.json
  Environment environment = {};
};
std::ostream& operator<<(std::ostream& out, const BadInput& row) { return out << row.name; }

constexpr auto kUrls = "unix://";

Words run(Words more) {
  more.insert(more.begin(), "run");
  more.insert(more.end(), {"--device", "cpu", "--seconds", "0.05"});
  return more;
}
Words sweep(Words more) {
  more.insert(more.begin(), {"sweep", "s.json"});
  more.insert(more.end(), {"--device", "cpu", "--seconds", "0.05"});
  return more;
}
Words tune(Words more) {
  more.insert(more.begin(), {"tune", "s.json", "--device", "cpu", "--dry-run"});
  return more;
}
const std::string kSpec = R"({"axes": {"queue": "null,host_polled", "payload": "64"}})";
const std::string kRedisSpec = R"({"axes": {"queue": "redis_list", "payload": "64"}})";

const std::vector<BadInput>& command_lines() {
  static const std::vector<BadInput> rows{
      {"NoArguments", {}, {"subcommand", "run", "sweep", "store"}},
      {"UnknownSubcommand", {"frobnicate"}, {"frobnicate"}},
      {"UnknownOption", run({"--frob", "1"}), {"--frob"}},
      {"UnknownOptionNearAnother",
       run({"--payloda", "64"}),
       {"--payloda: `feedrate run` has no such option; did you mean --payload?"}},
      {"AxisOfAnotherExperiment",
       run({"--strategy", "serial"}),
       {"--strategy: `feedrate run` has no such option; it is an axis of --experiment overlap"}},
      {"UnknownOptionOfAStore", {"store", "serve", "--memroy=1Gi"}, {"--memroy: `feedrate store serve`", "--memory"}},
      {"StrayWord", run({"stray"}), {"'stray'", "feedrate run"}},
      {"RedisUnused",
       run({"--queue", "null", "--redis", "redis://localhost"}),
       {"--redis", "redis://localhost", "null"}},
      {"SearchTimeZero",
       {"tune", "quick", "--device", "cpu", "--seconds-each", "0"},
       {"--seconds-each", "'0'", "0.1 to 3600"}},
      {"UnknownQueue", run({"--queue", "kafka"}), {"--queue", "kafka", "gpu_ring", "redis_list", "redis_stream"}},
      {"UnknownTransfer", run({"--transfer", "warp"}), {"--transfer", "warp", "pageable", "pinned", "mapped"}},
      {"UnknownWorkload", run({"--workload", "sort"}), {"--workload", "sort", "echo", "vecadd", "fma_chain"}},
      {"UnknownDevice", {"run", "--device", "tpu"}, {"--device", "tpu", "cpu", "cuda"}},
      {"CudaWithoutGpu", {"run", "--device", "cuda"}, {"--device", "cuda", "allowed", "cpu"}},
      {"PayloadText", run({"--payload", "abc"}), {"--payload", "abc", "whole number"}},
      {"PayloadTooLarge", run({"--payload", "65Mi"}), {"--payload", "65Mi", "0 to 64Mi"}},
      {"PayloadEmpty", run({"--payload="}), {"--payload"}},
      {"WindowZero", run({"--window", "0"}), {"--window", "'0'", "1 to 16Mi"}},
      {"ArrivalsUnknown", run({"--arrivals", "uniform"}), {"--arrivals", "uniform", "closed", "poisson", "trace"}},
      {"RateWithoutArrivals", run({"--rate", "10"}), {"--rate", "'10'", "--arrivals"}},
      {"MixWithoutArrivals", run({"--payload-mix", "64:1"}), {"--payload-mix", "64:1", "--arrivals"}},
      {"TraceMissing", run({"--arrivals", "trace", "--trace-file", "no.csv"}), {"--trace-file", "no.csv"}},
      {"PercentileUnknown", run({"--percentile", "p98"}), {"--percentile", "p98", "p99"}},
      {"PercentNegative", run({"--latency-within", "-1%"}), {"--latency-within", "-1%", "100%"}},
      {"SloText", {"capacity", "--device", "cpu", "--slo", "fast"}, {"--slo", "fast", "p99:50us"}},
      {"CapacityResume", {"capacity", "--device", "cpu", "--resume", "none"}, {"--resume", "none", "spec.json"}},
      {"CapacitySeconds", {"capacity", "--device", "cpu", "--seconds", "0"}, {"--seconds", "'0'", "more than 0"}},
      {"CapacitySpec", {"capacity", "nothing", "--device", "cpu"}, {"nothing", "capacity", "quick"}},
      {"BlockNotWholeWarps", run({"--block", "33"}), {"--block", "33", "multiple of 32"}},
      {"TransferWithRing",
       run({"--queue", "gpu_ring", "--transfer", "pinned"}),
       {"--transfer", "pinned", "none", "gpu_ring"}},
      {"HostPolledWithoutTransfer", run({"--queue", "host_polled", "--transfer", "none"}), {"host_polled", "transfer"}},
      {"VecaddHalfWords",
       run({"--workload", "vecadd", "--payload", "20"}),
       {"--payload: invalid value '20'", "vecadd", "32 bytes"}},
      {"VecaddHalfWordsInAMix",
       run({"--arrivals", "poisson", "--rate", "9", "--workload", "vecadd", "--payload-mix", "64:0.5,20:0.5"}),
       {"--payload-mix", "'20'", "vecadd", "32 bytes"}},
      {"FlopsZero",
       run({"--workload", "fma_chain", "--flops-per-byte", "0"}),
       {"--flops-per-byte", "'0'", "0.5 to 65536"}},
      {"LanesUneven", run({"--lanes", "3", "--producers", "2"}), {"3 lanes", "2 producers"}},
      {"PackAboveBatch", run({"--queue", "redis_list", "--pack", "8", "--batch", "4"}), {"pack 8", "batch"}},
      {"SecondsZero",
       {"run", "--queue", "null", "--device", "cpu", "--seconds", "0"},
       {"--seconds", "'0'", "--messages"}},
      {"GpuText", {"run", "--gpu", "first"}, {"--gpu", "first"}},
      {"ValidateWithoutFile", {"validate"}, {"FILE"}},
      {"ValidateMissingFile", {"validate", "nowhere.jsonl"}, {"FILE", "nowhere.jsonl", "readable"}},
      {"ValidateFolder", {"validate", "."}, {"FILE", "'.'", "readable"}},
      {"RunOutUnwritable", run({"--queue", "null", "--out", "/dev/null/rows"}), {"/dev/null/rows"}},
      {"RunTraceUnwritable", run({"--queue", "null", "--trace", "/dev/null/trace"}), {"--trace", "/dev/null/trace"}},
      {"WorkerWithoutRedis", {"worker", "--queue", "redis_list", "--device", "cpu"}, {"--redis", "redis://"}},
      {"WorkerWithRing",
       {"worker", "--queue", "gpu_ring", "--redis", "redis://localhost", "--device", "cpu"},
       {"--queue", "gpu_ring", "redis_list", "redis_stream"}},
      {"TtlNotANumber", {"store", "put", "x", "x.npy", "--ttl", "nan"}, {"--ttl", "'nan'", "a number"}},
      {"TtlNegative", {"store", "put", "x", "x.npy", "--ttl", "-1"}, {"--ttl", "'-1'", "0 to 1000000000 seconds"}},
      {"LeaseNotANumber", {"worker", "--lease", "nan"}, {"--lease", "'nan'", "a number"}},
      {"ExternalWorkerWithRing",
       run({"--queue", "gpu_ring", "--external-worker"}),
       {"--external-worker", "gpu_ring", "redis_list"}},
      {"ExternalWorkerWithoutRedis",
       run({"--queue", "redis_list", "--external-worker"}),
       {"--redis", "external worker"}},
      // Axes that belong to another queue, transfer, device or workload.
      {"LanesOfAnotherQueue", run({"--queue", "null", "--lanes", "4"}), {"feedrate: --lanes", "gpu_ring"}},
      {"PackOfAnotherQueue",
       run({"--queue", "host_polled", "--pack", "4"}),
       {"feedrate: --pack", "redis_list, redis_priority"}},
      {"StreamsOfAnotherTransfer",
       run({"--queue", "host_polled", "--transfer", "pageable", "--streams", "2"}),
       {"feedrate: --streams", "mapped, pinned"}},
      {"WorkersOfTheRing", run({"--queue", "gpu_ring", "--workers", "2"}), {"feedrate: --workers", "messages itself"}},
      {"BlockOnTheCpu", run({"--queue", "gpu_ring", "--block", "64"}), {"feedrate: --block", "--device cuda"}},
      {"FlopsOfAnotherWorkload",
       run({"--queue", "null", "--flops-per-byte", "4"}),
       {"feedrate: --flops-per-byte", "fma_chain"}},
      {"WatchdogZero", run({"--watchdog", "0"}), {"--watchdog", "'0'", "0.1 to 3600 seconds"}},
      {"OptionWithoutEffect",
       run({"--experiment", "storage", "--messages", "100"}),
       {"--messages", "'100'", "no effect on storage"}},
      {"TraceWithoutEffect",
       run({"--experiment", "launch", "--trace", "t.json"}),
       {"--trace", "t.json", "no effect on launch"}},
      {"WorkerWithoutEffect",
       run({"--experiment", "overlap", "--external-worker"}),
       {"--external-worker", "no effect on overlap"}},
      {"UnknownExperiment", {"run", "--experiment", "lunch"}, {"lunch", "allowed: feeding, "}},
      {"UnknownExperimentOfAList", {"list", "--markdown", "lunch"}, {"lunch", "allowed: feeding, "}},
      {"SweepOfACapacitySpec",
       {"sweep", source_dir() / "experiments/specs/capacity.json"},
       {"feedrate capacity capacity"}},
  };
  return rows;
}

const std::vector<BadInput>& specs() {
  static const std::vector<BadInput> rows{
      {"SpecUnknown", {"sweep", "no-such-spec"}, {"no-such-spec", "SPEC", "allowed"}},
      {"ResumeMissing", {"sweep", "--resume", "nowhere"}, {"--resume", "nowhere", "spec.json"}},
      {"NotJson", sweep({}), {"s.json", "JSON"}, R"({"axes": )"},
      {"NotAnObject", sweep({}), {"s.json", "object"}, "[1]"},
      {"NoAxes", sweep({}), {"s.json", "axes", "parts"}, "{}"},
      {"EmptyAxes", sweep({}), {"s.json", "axes"}, R"({"axes": {}})"},
      {"EmptyValues", sweep({}), {"payload"}, R"({"axes": {"payload": []}})"},
      {"UnknownKey", sweep({}), {"s.json", "'axis'", "axes", "constraints"}, R"({"axis": {}})"},
      {"UnknownRunKey",
       sweep({}),
       {"s.json", "'second'", "seconds"},
       R"({"run": {"second": 1}, "axes": {"payload": 64}})"},
      {"RunText",
       sweep({}),
       {"run.watchdog", "long", "number"},
       R"({"run": {"watchdog": "long"}, "axes": {"payload": 64}})"},
      {"RunRepetitionsZero",
       sweep({}),
       {"repetitions", "0"},
       R"({"run": {"repetitions": 0}, "axes": {"payload": 64}})"},
      {"RunOptionWithoutEffect",
       sweep({}),
       {"--warmup", "'2.0'", "no effect on launch"},
       R"({"experiment": "launch", "run": {"warmup": 2}, "axes": {"kernels": 1}})"},
      {"NameNotAString", sweep({}), {"s.json", "name"}, R"({"name": 5, "axes": {"payload": 64}})"},
      {"UnknownAxis", sweep({}), {"'paylod'", "payload", "window"}, R"({"axes": {"paylod": 64}})"},
      {"AxesOfAnotherExperiment",
       sweep({}),
       {"'engine'", "add \"experiment\": \"storage\""},
       R"({"axes": {"block": "64Ki", "engine": "pread", "size": "1Mi"}})"},
      {"AxisValue", sweep({}), {"queue", "kafka", "redis_list"}, R"({"axes": {"queue": "null,kafka"}})"},
      {"AxisObject", sweep({}), {"payload", "numbers or strings"}, R"({"axes": {"payload": {"a": 1}}})"},
      {"ZipUneven",
       sweep({}),
       {"s.json", "'batch' has 2", "'window' has 1"},
       R"({"axes": {"batch": "1,2", "window": "4"}, "zip": [["batch", "window"]]})"},
      {"ZipMissingAxis",
       sweep({}),
       {"s.json", "zip", "'window'"},
       R"({"axes": {"batch": "1,2"}, "zip": [["batch", "window"]]})"},
      {"ZipNotAString", sweep({}), {"s.json", "zip"}, R"({"axes": {"batch": "1,2"}, "zip": [[7]]})"},
      {"ConstraintWithoutThen",
       sweep({}),
       {"s.json", "constraint", "then"},
       R"({"axes": {"payload": 64}, "constraints": [{"if": {"payload": 64}}]})"},
      {"ConstraintsLeaveNothing",
       sweep({}),
       {"s.json", "constraints", "no point"},
       R"({"axes": {"payload": 64}, "constraints": [{"then": {"payload": {"min": "1Ki"}}}]})"},
      {"AxisWithoutEquals", sweep({"--axis", "payload"}), {"--axis", "payload", "name=values"}, kSpec},
      {"AxisUnknown", sweep({"--axis", "colour=1"}), {"--axis", "colour", "payload"}, kSpec},
      {"AxisWithoutValue", sweep({"--axis", "payload="}), {"--axis", "payload=", "name=values"}, kSpec},
      {"AxisHugeExponent", sweep({"--axis", "payload=pow2:6..99"}), {"--axis", "payload", "6..99", "40"}, kSpec},
      {"AxisBadValue", sweep({"--axis", "window=0"}), {"--axis window: invalid value '0'", "1 to 16Mi"}, kSpec},
      {"AxisInZip",
       sweep({"--axis", "payload=64"}),
       {"--axis payload=64", "together with window", "--axis window="},
       R"({"axes": {"payload": [64, 128], "window": [1, 2]}, "zip": [["payload", "window"]]})"},
      {"SearchGoal",
       sweep({}),
       {"s.json", "search.goal", "joy", "bytes_per_second"},
       R"({"parts": [{"axes": {"queue": "null"}, "search": {"goal": "joy"}}]})"},
      {"SearchSeconds",
       sweep({}),
       {"s.json", "search.seconds", "-1", "up to 3600"},
       R"({"parts": [{"axes": {"queue": "null"}, "search": {"seconds": -1}}]})"},
      {"SearchStartOfAnotherAxis",
       sweep({}),
       {"s.json", "search.start", "'batch'", "search.axes"},
       R"({"parts": [{"axes": {"queue": "null"}, "search": {"axes": {"window": [1, 4]}, "start": {"batch": 4}}}]})"},
      {"SearchStartOfTwoValues",
       sweep({}),
       {"s.json", "search.start", "'window'", "one value"},
       R"({"parts": [{"axes": {"queue": "null"}, "search": {"axes": {"window": [1, 4]}, "start": {"window": [1, 4]}}}]})"},
      {"SpecNamesItsKey",
       sweep({}),
       {"spec s.json: parts[0]: axis payload: invalid value 'big'"},
       R"({"axes": {"payload": "big"}})"},
      {"UnknownExperimentOfASpec",
       sweep({}),
       {"experiment: invalid value 'lunch'"},
       R"({"experiment": "lunch", "axes": {"form": "plain"}})"},
      {"CapacityWithoutOfferedLoad",
       {"capacity", "s.json", "--device", "cpu"},
       {"launch has none"},
       R"({"experiment": "launch", "axes": {"form": "plain"}})"},
      {"TuneOfOpenLoad",
       tune({}),
       {"capacity"},
       R"({"axes": {"queue": "null", "arrivals": "poisson", "rate": [1, 2]}})"},
      {"TuneOfFixedSettings",
       tune({}),
       {"all settings of this one are fixed"},
       R"({"experiment": "launch", "axes": {"form": "plain"}})"},
      {"TuneGoal", tune({"--goal", "latency_ns"}), {"messages_per_second, bytes_per_second"}, kSpec},
      {"OutUnwritable", sweep({"--out", "/dev/null/out"}), {"--out", "/dev/null/out"}, kSpec},
      {"OutAndResume", sweep({"--out", "a", "--resume", "b"}), {"--resume", "b"}, kSpec},
  };
  return rows;
}

/// Adds a row for each command that uses a Redis server.
void add_redis_rows(std::vector<BadInput>& rows, const std::string& name, const std::string& url, Words said) {
  said.insert(said.begin(), "--redis");
  rows.push_back({"Run" + name, run({"--queue", "redis_stream", "--redis", url}), said});
  rows.push_back({"Sweep" + name, sweep({"--redis", url}), said, kRedisSpec});
  rows.push_back({"Limits" + name, {"limits", "--device", "cpu", "--redis", url}, said});
  rows.push_back({"Worker" + name, {"worker", "--device", "cpu", "--redis", url}, said});
}

std::vector<BadInput> situations() {
  std::vector<BadInput> rows;
  add_redis_rows(rows, "Scheme", "http://localhost", {"http://localhost", kUrls});
  add_redis_rows(rows, "PortRefused", "redis://127.0.0.1:1", {"redis://127.0.0.1:1", "refused"});
  add_redis_rows(rows, "SocketMissing", "unix:///nowhere/redis.sock", {"unix:///nowhere/redis.sock", "No such file"});
  const Environment no_server{{"PATH", "/nowhere"}, {"FEEDRATE_REDIS_SERVER", ""}};
  const Environment broken_server{{"FEEDRATE_REDIS_SERVER", "/bin/false"}};
  const auto list = run({"--queue", "redis_list"});
  rows.push_back({"RunNoServer", list, {"--redis", "URL", "redis-server"}, "", "", no_server});
  rows.push_back({"SweepNoServer", sweep({}), {"--redis", "URL", "redis-server"}, kRedisSpec, "", no_server});
  rows.push_back({"RunBrokenServer", list, {"/bin/false", "start"}, "", "", broken_server});
  rows.push_back({"SweepBrokenServer", sweep({}), {"/bin/false", "start"}, kRedisSpec, "", broken_server});
  const Words plain = run({"--queue", "null"});
  rows.push_back({"EnvironmentPayload",
                  plain,
                  {"$FEEDRATE_PAYLOAD: invalid value 'abc'", "whole number"},
                  "",
                  "",
                  {{"FEEDRATE_PAYLOAD", "abc"}}});
  rows.push_back({"EnvironmentGpu", plain, {"$FEEDRATE_GPU", "first"}, "", "", {{"FEEDRATE_GPU", "first"}}});
  rows.push_back({"EnvironmentUnknown",
                  plain,
                  {"$FEEDRATE_PAYLAOD", "no option has this variable", "$FEEDRATE_PAYLOAD"},
                  "",
                  "",
                  {{"FEEDRATE_PAYLAOD", "64"}}});
  rows.push_back({"EnvironmentQueue",
                  {"run", "--device", "cpu"},
                  {"$FEEDRATE_QUEUE: invalid value 'kafka'", "null"},
                  "",
                  "",
                  {{"FEEDRATE_QUEUE", "kafka"}}});
  const auto with_config = [&](const std::string& name, const std::string& config, Words said) {
    Words arguments = plain;
    arguments.insert(arguments.begin(), {"--config", "c.json"});
    rows.push_back({name, arguments, std::move(said), "", config});
  };
  with_config("ConfigNotJson", R"({"run": )", {"--config", "JSON"});
  with_config("ConfigNotAnObject", "[1]", {"--config", "object"});
  with_config("ConfigUnknownOption", R"({"run": {"frob": 1}})", {"frob"});
  with_config("ConfigUnknownSubcommand", R"({"rum": {"payload": 1}})", {"rum"});
  with_config("ConfigBadValue", R"({"run": {"payload": "abc"}})",
              {"c.json: run.payload: invalid value 'abc'", "whole number"});
  rows.push_back({"ConfigMissing",
                  {"--config", "nowhere.json", "run", "--queue", "null"},
                  {"--config: invalid value 'nowhere.json'", "JSON file"}});
  rows.push_back({"EnvironmentSpecsMissing",
                  {"sweep", "quick"},
                  {"$FEEDRATE_SPECS", "/nowhere", "a folder"},
                  "",
                  "",
                  {{"FEEDRATE_SPECS", "/nowhere"}}});
  rows.push_back({"EnvironmentConfigMissing",
                  plain,
                  {"$FEEDRATE_CONFIG: invalid value 'nowhere.json'", "JSON file"},
                  "",
                  "",
                  {{"FEEDRATE_CONFIG", "nowhere.json"}}});
  return rows;
}

bool have_gpu() {
  Workplace place;
  for (const Json& device : Json::parse(place.run({"list", "--json"}).out).at("devices")) {
    if (device.at("name") == "cuda") return device.at("unavailable") == "";
  }
  return false;
}

class BadInputTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, InvalidInputIsReportedBeforeAnythingRuns) {
  const BadInput& row = GetParam();
  if (row.name == "CudaWithoutGpu" && have_gpu()) GTEST_SKIP() << "this machine has a GPU";
  Workplace place;
  if (!row.spec.empty()) place.write("s.json", row.spec);
  if (!row.config.empty()) place.write("c.json", row.config);
  const auto before = place.contents();
  const Outcome outcome = place.run(row.arguments, row.environment);
  EXPECT_EQ(outcome.code, 2);
  for (const std::string& said : row.said) EXPECT_NE(outcome.err.find(said), std::string::npos) << said;
  EXPECT_TRUE(outcome.out.empty()) << "something ran: " << outcome.out.substr(0, 60);
  EXPECT_EQ(place.contents(), before) << "something was created";
  EXPECT_TRUE(place.temporary_empty());
  if (HasFailure()) std::cerr << "stderr was: " << outcome.err;
}

const auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(CommandLine, BadInputTest, testing::ValuesIn(command_lines()), kName);
INSTANTIATE_TEST_SUITE_P(Spec, BadInputTest, testing::ValuesIn(specs()), kName);
INSTANTIATE_TEST_SUITE_P(Situation, BadInputTest, testing::ValuesIn(situations()), kName);

TEST(BadInputTest, OutFolderWithRowsIsNotModified) {
  Workplace place;
  place.write("s.json", kSpec);
  fs::create_directories(place / "out");
  write_text(place / "out" / "rows.jsonl", "{\"kind\":\"cell\"}\n");
  const Outcome outcome = place.run(sweep({"--out", "out"}));
  EXPECT_EQ(outcome.code, 2);
  for (const char* said : {"--out", "'out'", "--resume"})
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  EXPECT_EQ(read_text(place / "out" / "rows.jsonl"), "{\"kind\":\"cell\"}\n");
}

TEST(BadInputTest, ResumeDoesNotModifyBrokenRows) {
  Workplace place;
  fs::create_directories(place / "out");
  write_text(place / "out" / "spec.json", kSpec);
  write_text(place / "out" / "rows.jsonl", "{\"kind\":\n{}\n");
  const Outcome outcome = place.run({"sweep", "--resume", "out", "--device", "cpu"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("rows.jsonl: line 1"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_text(place / "out" / "rows.jsonl"), "{\"kind\":\n{}\n");
}

// Bytes that are not UTF-8 are escaped in rows, or rejected before anything is created.
TEST(ForeignBytes, NonUtf8PathIsEscapedInRows) {
  Workplace place;
  place.write("s.json", R"({"axes": {"queue": "null"}, "run": {"messages": 200, "warmup": 0}})");
  for (const Words& end : {Words{"sweep", "s.json"}, Words{"sweep", "--resume", "caf\xe9"}}) {
    Words words = end;
    if (end.size() == 2) words.insert(words.end(), {"--out", "caf\xe9"});
    words.insert(words.end(), {"--device", "cpu", "--floor-rounds", "0"});
    const Outcome outcome = place.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(place.run({"validate", "caf\xe9/rows.jsonl"}).code, 0);
  }
  const Json run = rows_of(read_text(place / "caf\xe9" / "rows.jsonl")).front();
  EXPECT_NE(run.dump().find(R"(caf\\xe9)"), std::string::npos) << run;
  const Outcome shown = place.run({"run", "--queue", "null", "--device", "cpu", "--messages", "100", "--warmup", "0",
                                   "--floor-rounds", "0", "--json", "--out", "\xff.jsonl"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find(R"(\\xff.jsonl)"), std::string::npos) << shown.out;
}

TEST(ForeignBytes, NonUtf8OptionsOfAPointAreRejected) {
  Workplace place;
  const Words words{"run", "--queue", "null", "--device", "cpu", "--arrivals", "trace", "--trace-file", "caf\xe9.csv"};
  const Outcome outcome = place.run(words);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find(R"(--trace-file: invalid value 'caf\xe9.csv'; allowed: UTF-8)"), std::string::npos)
      << outcome.err;
  const Outcome worker =
      place.run({"worker", "--queue", "redis_list", "--redis", "unix:///nowhere", "--name", "w\xfc"});
  EXPECT_EQ(worker.code, 2);
  EXPECT_NE(worker.err.find(R"(--name: invalid value 'w\xfc')"), std::string::npos) << worker.err;
}

}  // namespace
}  // namespace feedrate::cli_test
