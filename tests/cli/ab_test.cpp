// `feedrate ab`: two sides are measured in interleaved pairs, each into its own results folder.
#include <map>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class Ab : public testing::Test {
 protected:
  void SetUp() override {
    place_.write("s.json", R"({"axes": {"queue": "host_polled,gpu_ring", "payload": 64, "window": 64, "producers": 1},
                               "run": {"messages": 200, "warmup": 0}})");
  }
  Outcome ab(const Words& more) {
    Words words{"ab", "s.json", "--device", "cpu", "--out", "out", "--pairs", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return place_.run(words);
  }
  std::vector<Json> side(const char* name) { return cells_of(place_ / "out" / name / "rows.jsonl"); }
  Workplace place_;
};

TEST_F(Ab, PairsAreMeasuredInAbbaOrder) {
  const Outcome outcome = ab({"--b-axis", "window=128"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, std::vector<std::pair<int, int>>> order;
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(place_.run({"validate", std::string("out/") + name + "/rows.jsonl"}).err, "");
    EXPECT_TRUE(fs::exists(place_ / "out" / name / "catalogue.json"));
    for (const Json& row : side(name)) {
      EXPECT_EQ(row.at("params").at("window"), name[0] == 'a' ? 64 : 128);
      EXPECT_EQ(row.at("repetition"), row.at("ab").at("pair"));
      order[name].emplace_back(row.at("ab").at("point"), row.at("ab").at("pair"));
    }
  }
  ASSERT_EQ(order["a"].size(), 2u * 4);
  EXPECT_EQ(order["a"], order["b"]) << "both sides must measure the same cells in the same order";
  EXPECT_EQ(order["a"][0].first, order["a"][1].first) << "a visit to a point measures two pairs";
  EXPECT_NE(outcome.err.find("python -m analysis ab out"), std::string::npos) << outcome.err;
}

TEST_F(Ab, BothSidesRestartAndRowsRecordTheStart) {
  const Outcome outcome = ab({"--b-axis", "window=128", "--restart-after", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"a", "b"}) {
    std::set<int> starts;
    for (const Json& row : side(name)) {
      EXPECT_EQ(row.at("ab").at("start"), row.at("ab").at("pair").get<int>() / 2);
      starts.insert(row.at("ab").at("start").get<int>());
    }
    EXPECT_EQ(starts, (std::set<int>{0, 1}));
    std::set<std::string> processes;
    for (const Json& row : rows_of(read_text(place_ / "out" / name / "rows.jsonl"))) {
      if (row.at("kind") == "run") processes.insert(row.at("id"));
    }
    EXPECT_EQ(processes.size(), 2u) << "each start must record one run";
  }
}

TEST_F(Ab, OtherExecutableIsSideA) {
  const Outcome outcome = ab({"--other", executable(), "--axis", "queue=host_polled"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(side("a").size(), 4u);
  EXPECT_EQ(side("b").size(), 4u);
  const auto ids = [&](const char* name) {
    std::set<std::string> found;
    for (const Json& row : side(name)) found.insert(row.at("id"));
    return found;
  };
  EXPECT_EQ(ids("a"), ids("b"));
}

TEST_F(Ab, SideThatExitsIsReported) {
  const Outcome outcome = ab({"--other", "/bin/false"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("side A ended"), std::string::npos) << outcome.err;
}

TEST_F(Ab, InvalidComparisonsAreRejected) {
  const Outcome same = ab({});
  EXPECT_EQ(same.code, 2);
  EXPECT_NE(same.err.find("different values of --a-axis and --b-axis"), std::string::npos) << same.err;
  const Outcome once = ab({"--b-axis", "window=128", "--restart-after", "4"});
  EXPECT_EQ(once.code, 2);
  EXPECT_NE(once.err.find("more than --restart-after (4)"), std::string::npos) << once.err;
  const Outcome missing = ab({"--other", "nowhere/feedrate"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("nowhere/feedrate"), std::string::npos) << missing.err;
  EXPECT_EQ(place_.contents(), Words{"s.json"});
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
      EXPECT_EQ(outcome.err.find("pairs each"), std::string::npos) << "announced: " << outcome.err;
      EXPECT_EQ(place_.contents(), Words{"s.json"}) << said;
    }
  }
}

TEST_F(Ab, InvalidInputFoundByASideLeavesNothing) {
  const Outcome other = place_.run({"ab", "s.json", "--device", "cpu", "--out", "new/out", "--pairs", "4", "--other",
                                    executable(), "--a-axis", "queue=nowhere"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("feedrate: side A: --axis queue: invalid value 'nowhere'"), std::string::npos) << other.err;
  EXPECT_EQ(place_.contents(), Words{"s.json"});
}

}  // namespace
}  // namespace feedrate::cli_test
