// Output of `feedrate list`, --help and --version.
#include <set>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

std::set<std::string> names(const Json& entries) {
  std::set<std::string> all, seen;
  for (const Json& entry : entries) {
    EXPECT_FALSE(entry.at("description").get<std::string>().empty()) << entry;
    const std::string name = entry.at("name");
    // Two experiments may have axes with the same name.
    EXPECT_TRUE(seen.insert(entry.value("experiment", "") + " " + name).second) << entry;
    all.insert(name);
  }
  return all;
}
void expect_all(const std::set<std::string>& have, const std::set<std::string>& wanted) {
  for (const auto& name : wanted) EXPECT_TRUE(have.contains(name)) << name;
}

TEST(List, JsonNamesEveryMember) {
  Workplace place;
  const Outcome outcome = place.run({"list", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json all = Json::parse(outcome.out);
  expect_all(names(all.at("queues")), {"null", "host_polled", "redis_list", "redis_priority", "redis_pubsub",
                                       "redis_reliable", "redis_stream", "gpu_ring"});
  expect_all(names(all.at("transfers")), {"pageable", "pinned", "mapped"});
  expect_all(names(all.at("workloads")), {"echo", "vecadd", "fma_chain"});
  expect_all(names(all.at("devices")), {"cpu", "cuda"});
  expect_all(names(all.at("axes")), {"queue", "transfer", "workload", "device", "payload", "batch", "window",
                                     "producers", "streams", "block", "lanes", "pack", "flops-per-byte"});
  for (const Json& queue : all.at("queues")) {
    EXPECT_FALSE(queue.at("delivery").get<std::string>().empty()) << queue;
    EXPECT_FALSE(queue.at("order").get<std::string>().empty()) << queue;
    const bool broker = queue.at("name").get<std::string>().starts_with("redis_");
    EXPECT_EQ(queue.at("external_worker"), broker) << queue;
  }
}

// A member that needs CUDA is listed in a build without it, too, with the reason why it is unavailable.
TEST(List, EveryMemberWithAFileIsListedInEveryBuild) {
  Workplace place;
  const Json all = Json::parse(place.run({"list", "--json"}).out);
  const std::vector<std::pair<const char*, const char*>> folders{
      {"variants/feeding/queues", "queues"},         {"variants/feeding/transfers", "transfers"},
      {"variants/overlap/strategies", "strategies"}, {"variants/overlap/pipelines", "pipelines"},
      {"variants/storage/engines", "engines"},       {"kernels/workloads", "workloads"}};
  if (!fs::exists(source_dir() / folders[0].first)) GTEST_SKIP() << "a bundle has no sources";
  for (const auto& [folder, kind] : folders) {
    std::set<std::string> members;
    for (const auto& entry : fs::directory_iterator(source_dir() / folder)) {
      const fs::path file = entry.path();
      if (file.extension() == ".cpp" || file.extension() == ".cu") members.insert(file.stem());
    }
    EXPECT_FALSE(members.empty()) << folder;
    expect_all(names(all.at(kind)), members);
  }
}

TEST(List, UnavailableRedisQueuesStateTheReason) {
  Workplace place;
  const Environment no_server{{"PATH", "/nowhere"}, {"FEEDRATE_REDIS_SERVER", ""}};
  for (const Json& queue : Json::parse(place.run({"list", "--json"}, no_server).out).at("queues")) {
    const bool redis = queue.at("name").get<std::string>().starts_with("redis");
    EXPECT_EQ(queue.at("unavailable") != "", redis) << queue;
  }
  EXPECT_NE(place.run({"list"}, no_server).out.find("no redis-server"), std::string::npos);
}

// Environment variables of a pod with the Services feedrate and feedrate-redis, each with a named port, and of Docker
// links.
TEST(List, VariablesOfServicesAndLinksAreNotOptions) {
  Workplace place;
  Environment links{{"FEEDRATE_NAME", "/web/feedrate"}, {"FEEDRATE_ENV_HOME", "/root"}};
  for (const std::string service : {"FEEDRATE", "FEEDRATE_REDIS"}) {
    links.insert(links.end(), {{service + "_SERVICE_HOST", "10.96.0.7"},
                               {service + "_SERVICE_PORT", "9090"},
                               {service + "_SERVICE_PORT_METRICS", "9090"},
                               {service + "_PORT", "tcp://10.96.0.7:9090"},
                               {service + "_PORT_9090_TCP", "tcp://10.96.0.7:9090"},
                               {service + "_PORT_9090_TCP_PROTO", "tcp"},
                               {service + "_PORT_9090_TCP_PORT", "9090"},
                               {service + "_PORT_9090_UDP_ADDR", "10.96.0.7"}});
  }
  const Outcome outcome = place.run({"list"}, links);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const std::string slip : {"FEEDRATE_SERVICE_HOTS", "FEEDRATE_PORT", "FEEDRATE_PORT_HTTP_TCP"}) {
    const Outcome refused = place.run({"list"}, {{slip, "9090"}});
    EXPECT_EQ(refused.code, 2) << slip;
    EXPECT_NE(refused.err.find("$" + slip), std::string::npos) << refused.err;
  }
}

TEST(List, TextContainsTheSameNames) {
  Workplace place;
  const Outcome json = place.run({"list", "--json"}), text = place.run({"list"});
  EXPECT_EQ(text.code, 0);
  for (const auto& [kind, entries] : Json::parse(json.out).items()) {
    if (!entries.is_array() || kind == "limits") continue;
    EXPECT_NE(text.out.find(kind), std::string::npos) << kind;
    for (const auto& name : names(entries)) EXPECT_NE(text.out.find(name), std::string::npos) << name;
  }
}

TEST(Help, VersionNamesRevisionAndCuda) {
  Workplace place;
  const Outcome outcome = place.run({"--version"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* said : {"feedrate ", "revision ", "CUDA "})
    EXPECT_NE(outcome.out.find(said), std::string::npos) << outcome.out;
}

TEST(Help, EverySubcommandHasHelp) {
  Workplace place;
  const Outcome top = place.run({"--help"});
  EXPECT_EQ(top.code, 0);
  for (const char* command : {"list", "run", "sweep", "limits", "worker", "validate"}) {
    EXPECT_NE(top.out.find(command), std::string::npos) << command;
    const Outcome outcome = place.run({command, "--help"});
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_NE(outcome.out.find("Usage: feedrate " + std::string(command)), std::string::npos) << outcome.out;
  }
}

TEST(Help, ComparisonHelpListsOnlyWhatHasAnEffect) {
  Workplace place;
  const std::string text = place.run({"ab", "--help"}).out;
  EXPECT_NE(text.find("--slice "), std::string::npos) << text;
  for (const char* option : {"--seconds", "--repetitions", "--until-precise", "--keep-disturbed", "--resume"}) {
    EXPECT_EQ(text.find(option), std::string::npos) << option;
    Words words{"ab", "quick", "--device", "cpu", "--b-axis", "window=8", option};
    if (const std::string name = option; name == "--seconds" || name == "--repetitions") words.emplace_back("1");
    if (const std::string name = option; name == "--resume") words.emplace_back("none");
    const Outcome rejected = place.run(words);
    EXPECT_EQ(rejected.code, 2) << option;
    EXPECT_NE(rejected.err.find(option), std::string::npos) << rejected.err;
  }
}

TEST(Help, RunHelpListsTheWordsThatAxesAccept) {
  Workplace place;
  const std::string text = place.run({"run", "--help"}).out;
  for (const char* word :
       {"redis_stream", "pageable", "fma_chain", "cuda", "poisson", "as_finished", "backoff", "vram"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
}

TEST(Help, WorkerHelpShowsItsOwnDefaults) {
  Workplace place;
  const std::string text = place.run({"worker", "--help"}).out;
  const auto at = text.find("--queue");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(text.substr(at, 60).find("redis_list"), std::string::npos) << text.substr(at, 60);
}

TEST(Help, RunHelpListsEveryAxisAndItsVariable) {
  Workplace place;
  const Json all_axes = Json::parse(place.run({"list", "--json"}).out).at("axes");
  for (const Json& entry : all_axes) {
    const std::string axis = entry.at("name");
    const std::string help = place.run({"run", "--experiment", entry.at("experiment"), "--help"}).out;
    std::string variable = "FEEDRATE_" + axis;
    for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_NE(help.find("--" + axis + " "), std::string::npos) << axis;
    EXPECT_NE(help.find(variable), std::string::npos) << variable;
  }
}

}  // namespace
}  // namespace feedrate::cli_test
