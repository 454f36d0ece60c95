// `feedrate ab`: two sides are measured in interleaved slices, each into its own results folder.
#include <algorithm>
#include <map>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class Ab : public testing::Test {
 protected:
  void SetUp() override {
    place_.write("s.json", R"({"axes": {"queue": "host_polled,gpu_ring", "payload": 64, "window": 64, "producers": 1},
                               "run": {"seconds": 0.5}})");
  }
  /// Runs the comparison with short slices, and with `more`, which may replace the options given here.
  Outcome ab(const Words& more) {
    Words words{"ab", "s.json", "--device", "cpu", "--out", "out"};
    for (const auto& [option, value] : {std::pair{"--starts", "2"}, std::pair{"--minutes", "0.09"},
                                        std::pair{"--slice", "0.005"}, std::pair{"--lead", "0.002"}}) {
      if (std::ranges::find(more, option) == more.end()) words.insert(words.end(), {option, value});
    }
    words.insert(words.end(), more.begin(), more.end());
    return place_.run(words);
  }
  std::vector<Json> side(const char* name) { return cells_of(place_ / "out" / name / "rows.jsonl"); }
  Workplace place_;
};

TEST_F(Ab, SlicesOfBothSidesAlternateAndAreKept) {
  const Outcome outcome = ab({"--b-axis", "window=128"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  using Place = std::pair<int, int>;
  std::map<std::pair<int, int>, std::map<Place, std::string>> sides_of;  // by point and start
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(place_.run({"validate", std::string("out/") + name + "/rows.jsonl"}).err, "");
    EXPECT_TRUE(fs::exists(place_ / "out" / name / "catalogue.json"));
    for (const Json& row : side(name)) {
      ASSERT_TRUE(row.at("status") == "ok" || row.at("cause") == "no_results") << row.at("reason");
      EXPECT_EQ(row.at("params").at("window"), name[0] == 'a' ? 64 : 128);
      const Json& ab = row.at("ab");
      EXPECT_EQ(row.at("repetition"), ab.at("start"));
      for (const Json& slice : ab.at("slices")) {
        sides_of[{ab.at("point"), ab.at("start")}][{slice.at("block"), slice.at("place")}] += name;
        if (!slice.contains("figures")) {  // on a busy machine, no window may come back within a short slice
          EXPECT_EQ(slice.at("cause"), "no_results") << slice.at("reason");
          continue;
        }
        EXPECT_GT(slice.at("figures").at("messages_per_second"), 0);
        EXPECT_GT(slice.at("figures").at("latency_ns.p50"), 0);
      }
      if (row.at("status") == "ok") {
        EXPECT_GT(row.at("figures").at("latency_ns").at("samples"), 0);
      }
      EXPECT_FALSE(row.at("details").contains("driver")) << "slices must not measure the load generator's limit";
    }
  }
  ASSERT_EQ(sides_of.size(), 2u * 2);
  for (const auto& [visit, places] : sides_of) {
    ASSERT_GE(places.size(), 8u);
    std::string sides;
    for (const auto& [place, who] : places) sides += who;
    for (std::size_t at = 0; at < sides.size(); at += 4) {
      EXPECT_TRUE(sides.substr(at, 4) == "abba" || sides.substr(at, 4) == "baab") << sides;
    }
  }
  EXPECT_NE(outcome.err.find("python -m analysis ab out"), std::string::npos) << outcome.err;
}

TEST_F(Ab, SaysAfterFourStartsWhatItWillFind) {
  const Outcome outcome =
      ab({"--b-axis", "window=128", "--axis", "queue=gpu_ring", "--starts", "6", "--minutes", "0.18"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t said = outcome.err.find("if starts differ as the first 4, 6 starts find");
  ASSERT_NE(said, std::string::npos) << outcome.err;
  EXPECT_LT(outcome.err.find("[4/6]"), said);
  for (const char* line : {"messages_per_second: gpu_ring ", "latency_ns.p50: gpu_ring "}) {
    EXPECT_NE(outcome.err.find(line, said), std::string::npos) << line << outcome.err;
  }
  EXPECT_EQ(outcome.err.find("if starts differ as "), said) << "trials on a GPU say nothing about a CPU";
}

TEST_F(Ab, BothSidesRestartAndUseTheSameLimits) {
  place_.read_limits();
  const Outcome outcome = ab({"--b-axis", "window=128", "--axis", "queue=gpu_ring"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, std::map<std::string, Json>> limits;
  for (const char* name : {"a", "b"}) {
    std::set<std::string> processes;
    for (const Json& row : rows_of(read_text(place_ / "out" / name / "rows.jsonl"))) {
      if (row.at("kind") == "run") {
        processes.insert(row.at("id"));
        limits[name][row.at("id")] = row.at("limits");
      }
    }
    EXPECT_EQ(processes.size(), 2u) << "each start must record one run";
  }
  const Json& known = limits["b"].begin()->second;
  EXPECT_FALSE(known.empty());
  for (const auto& [name, runs] : limits) {
    for (const auto& [id, those] : runs) EXPECT_EQ(those, known) << name;
  }
}

TEST_F(Ab, OtherExecutableIsSideA) {
  const Outcome outcome = ab({"--other", executable(), "--axis", "queue=host_polled"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto ids = [&](const char* name) {
    std::set<std::string> found;
    for (const Json& row : side(name)) found.insert(row.at("id"));
    return found;
  };
  EXPECT_EQ(ids("a").size(), 2u);
  EXPECT_EQ(ids("a"), ids("b"));
}

TEST_F(Ab, PointsWithoutTimeAreNamed) {
  const Outcome outcome =
      ab({"--b-axis", "window=128", "--axis", "payload=64,128,256,512", "--starts", "1", "--minutes", "0.05"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("not compared, because --minutes is too short for all 8 points:"), std::string::npos)
      << outcome.err;
  std::set<std::string> queues;
  for (const Json& row : side("a")) queues.insert(row.at("params").at("queue"));
  EXPECT_EQ(queues, (std::set<std::string>{"gpu_ring", "host_polled"})) << "every variant must be compared";
}

TEST_F(Ab, OtherExperimentsAreComparedInSlices) {
  place_.write("s.json", R"({"experiment": "launch", "axes": {"form": ["plain", "graph"], "kernels": 4}})");
  const Outcome outcome = ab({"--other", executable(), "--starts", "1", "--minutes", "0.05"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, std::string> statuses;
  for (const Json& row : side("b")) statuses[row["params"]["form"]] = row["status"];
  EXPECT_EQ(statuses.at("plain"), "ok");
  for (const Json& row : side("a")) {
    if (row["params"]["form"] != "plain") continue;
    EXPECT_GT(row["ab"]["slices"].at(0).at("figures").at("kernels_per_second"), 0);
  }
}

TEST_F(Ab, KilledSideIsReportedAndItsRowsAreKept) {
  const std::string out = place_ / "out";
  const auto process = place_.start({"ab", "s.json", "--device", "cpu", "--out", out, "--starts", "40", "--minutes",
                                     "2", "--slice", "0.005", "--lead", "0", "--b-axis", "window=128"});
  ASSERT_TRUE(await([&] { return process->err().find("[1/") != std::string::npos; })) << process->err();
  const auto sides = processes_naming(out + "/b");
  ASSERT_EQ(sides.size(), 1u);
  kill(sides[0], SIGKILL);
  EXPECT_EQ(process->wait(), 1);
  EXPECT_NE(process->err().find("ended: killed by signal 9"), std::string::npos) << process->err();
  EXPECT_FALSE(side("b").empty());
}

TEST_F(Ab, ProgramThatIsNoFeedrateIsRejected) {
  for (const char* other : {"/bin/false", "/bin/true", "/bin/echo", "/tmp"}) {
    const Outcome outcome = ab({"--other", other});
    EXPECT_EQ(outcome.code, 2) << other;
    EXPECT_NE(outcome.err.find(std::string("--other: invalid value '") + other), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(place_ / "out")) << other;
  }
}

TEST_F(Ab, AxisThatChangesNoPointIsRejected) {
  const Outcome outcome = ab({"--b-axis", "flops-per-byte=16"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--b-axis: invalid value 'flops-per-byte=16'; allowed: an axis that changes the points"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Ab, ExecutableWithAnotherProtocolIsRejected) {
  place_.write("older", "#!/bin/sh\nread line\necho '{\"points\": []}'\n");
  fs::permissions(place_ / "older", fs::perms::owner_all);
  const Outcome outcome = ab({"--other", "./older"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--other: invalid value './older'; allowed: an executable that compares in slices"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Ab, InvalidComparisonsAreRejected) {
  const std::vector<std::pair<Words, std::string>> all{
      {{}, "different values of --a-axis and --b-axis"},
      {{"--other", "nowhere/feedrate"}, "nowhere/feedrate"},
      {{"--b-axis", "window=128", "--seconds", "1"}, "--seconds: invalid value '1'; allowed: no value"},
      {{"--b-axis", "window=128", "--starts", "20", "--dry-run"}, "--minutes: invalid value '0.09'; allowed: at least"},
      {{"--b-axis", "window=128", "--slice", "0"}, "--slice: invalid value '0'; allowed: 0.001 to 60"}};
  for (const auto& [words, said] : all) {
    const Outcome outcome = ab(words);
    EXPECT_EQ(outcome.code, 2) << said;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
    EXPECT_EQ(place_.contents(), Words{"s.json"});
  }
}

TEST_F(Ab, SpecWithSearchesIsRejected) {
  for (const char* spec : {"quick", "capacity"}) {
    const Outcome outcome = place_.run({"ab", spec, "--device", "cpu", "--other", executable()});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("allowed: a spec of points, without searches"), std::string::npos) << outcome.err;
  }
}

TEST_F(Ab, InvalidAxisOfOneSideLeavesNothing) {
  const std::vector<std::pair<Words, std::string>> all{
      {{"--a-axis", "window=huge"}, "--a-axis window: "},
      {{"--b-axis", "queue=nowhere"}, "--b-axis queue: invalid value 'nowhere'; allowed: gpu_ring"},
      {{"--b-axis", "winow=8"}, "--b-axis: invalid value 'winow'; allowed: one of queue"},
      {{"--a-axis", "window"}, "--a-axis: invalid value 'window'; allowed: name=values"},
      {{"--a-axis", "window=1,2"}, "--a-axis gives 4 points, but --b-axis 2"}};
  for (const auto& [words, said] : all) {
    for (const bool planned : {false, true}) {
      Words given = words;
      if (planned) given.emplace_back("--dry-run");
      const Outcome outcome = ab(given);
      EXPECT_EQ(outcome.code, 2) << said;
      EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
      EXPECT_EQ(outcome.err.find("starts of both sides"), std::string::npos) << "announced: " << outcome.err;
      EXPECT_EQ(place_.contents(), Words{"s.json"}) << said;
    }
  }
}

TEST_F(Ab, InvalidInputFoundByASideLeavesNothing) {
  const Outcome other = place_.run(
      {"ab", "s.json", "--device", "cpu", "--out", "new/out", "--other", executable(), "--a-axis", "queue=nowhere"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("feedrate: side A: --axis queue: invalid value 'nowhere'"), std::string::npos) << other.err;
  EXPECT_EQ(place_.contents(), Words{"s.json"});
}

}  // namespace
}  // namespace feedrate::cli_test
