// The search for a capacity: its answers and every probe are rows, and it goes on where it was ended.
#include <algorithm>
#include <set>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class Capacity : public testing::Test {
 protected:
  static constexpr auto kSpec = R"({"axes": {"queue": "gpu_ring,host_polled", "payload": "64", "window": 256},
                                    "run": {"seconds": 0.05, "warmup": 0}})";
  void SetUp() override { place_.write("s.json", kSpec); }
  std::vector<Json> answers() {
    std::vector<Json> found;
    for (Json& row : rows_of(read_text(place_ / "out" / "rows.jsonl"))) {
      if (row.at("kind") == "capacity") found.push_back(std::move(row));
    }
    return found;
  }
  Workplace place_;
};

TEST_F(Capacity, AnswersAreIntervalsWithTheirEvidence) {
  const Outcome outcome = place_.run({"capacity", "s.json", "--device", "cpu", "--slo", "p50:10ms", "--slo", "p50:1us",
                                      "--resolution", "50%", "--out", "out"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  const auto found = answers();
  ASSERT_EQ(found.size(), 4u);
  for (const Json& row : found) {
    ASSERT_EQ(row.at("status"), "ok") << row.at("reason");
    const Json& capacity = row.at("capacity");
    EXPECT_LT(capacity.at("low"), capacity.at("high"));
    EXPECT_FALSE(capacity.at("limit").get<std::string>().empty());
    if (row.at("slo").at("text") == "p50:10ms") {
      EXPECT_GT(capacity.at("low"), 100);
    }
    // Every probe is a row that was measured at that rate.
    for (const Json& probe : capacity.at("probes")) {
      const auto cells = cells_of(place_ / "out" / "rows.jsonl");
      const auto cell =
          std::find_if(cells.begin(), cells.end(), [&](const Json& c) { return c.at("id") == probe.at("id"); });
      ASSERT_NE(cell, cells.end());
      EXPECT_EQ(cell->at("params").at("rate"), probe.at("rate"));
      EXPECT_EQ(cell->at("params").at("queue"), row.at("params").at("queue"));
    }
  }
  EXPECT_NE(outcome.out.find("gpu_ring"), std::string::npos);
}

TEST_F(Capacity, GoesOnWhereItWasKilled) {
  const Words words{"--device", "cpu", "--slo", "p50:10ms", "--resolution", "50%"};
  Words first{"capacity", "s.json", "--out", "out"};
  first.insert(first.end(), words.begin(), words.end());
  const Words more{"capacity", "--resume", "out", "--device", "cpu"};  // it knows the bound and the resolution
  const auto process = place_.start(first);
  ASSERT_TRUE(await([&] { return !process->out().empty(); })) << process->err();  // the first answer
  process->signal(SIGKILL);
  process->wait();
  const auto before = answers();
  ASSERT_EQ(before.size(), 1u);
  const Outcome outcome = place_.run(more);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto after = answers();
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after.front(), before.front());
  EXPECT_EQ(after.back().at("slo").at("text"), "p50:10ms");
  EXPECT_EQ(after.back().at("capacity").at("resolution"), 0.5);
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  std::set<std::string> ids;
  for (const Json& cell : cells_of(place_ / "out" / "rows.jsonl")) EXPECT_TRUE(ids.insert(cell.at("id")).second);
}

TEST(OpenLoadRun, SaysWhereTheTimeWent) {
  Workplace place;
  const Outcome outcome = place.run(
      {"run", "--device", "cpu", "--queue", "gpu_ring", "--arrivals", "poisson", "--rate", "5k", "--seconds", "0.2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* said : {"response", "service", "send lag", "backlog", "never sent"}) {
    EXPECT_NE(outcome.out.find(said), std::string::npos) << said << " in:\n" << outcome.out;
  }
}

}  // namespace
}  // namespace feedrate::cli_test
