// `feedrate capacity`: its answers and probes are rows, and an interrupted search resumes.
#include <algorithm>
#include <map>
#include <set>

#include "tests/cli/feedrate_process.hpp"

namespace feedrate::cli_test {
namespace {

class Capacity : public testing::Test {
 protected:
  static constexpr auto kSpec = R"({"axes": {"queue": "gpu_ring,host_polled", "payload": "64", "window": 64},
                                    "run": {"seconds": 0.05, "warmup": 0}})";
  void SetUp() override { place_.write("s.json", kSpec); }
  std::vector<Json> answers() {
    std::vector<Json> found;
    for (Json& row : rows_of(read_text(place_ / "out" / "rows.jsonl"))) {
      if (row.at("kind") == "capacity") found.push_back(std::move(row));
    }
    return found;
  }
  /// Checks that the table at the end of the search fits into 80 columns, and that the reason for a limit quotes the
  /// rate.
  static void expect_reason_in_the_table(const Outcome& outcome, const std::string& limit) {
    EXPECT_TRUE(limit.starts_with("at ")) << limit;
    EXPECT_NE(limit.find("msg/s "), std::string::npos) << limit;
    const auto table = outcome.err.find("Highest rates that meet the latency bound");
    ASSERT_NE(table, std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("\n    ", table), std::string::npos) << "no point is followed by its answer";
    std::istringstream lines(outcome.err.substr(table, outcome.err.find("results in", table) - table));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(std::count_if(line.begin(), line.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }), 80)
          << line;
    }
    EXPECT_NE(outcome.err.find("not GPU results"), std::string::npos) << outcome.err;
  }
  Workplace place_;
};

TEST_F(Capacity, ResumedSearchReportsIntervalsAndTheirProbes) {
  const auto process = place_.start({"capacity", "s.json", "--out", "out", "--device", "cpu", "--slo", "p50:10s",
                                     "--slo", "p50:1us", "--resolution", "100%", "--axis", "queue=host_polled",
                                     "--seconds-each", "0"});  // until every answer is decided, on a busy machine too
  const auto rows = place_ / "out" / "rows.jsonl";
  const auto measured = [&] {  // complete lines only
    const std::string text = fs::exists(rows) ? read_text(rows) : "";
    std::size_t cells = 0;
    for (const Json& row : rows_of(text.substr(0, text.rfind('\n') + 1))) cells += row.at("kind") == "cell" ? 1 : 0;
    return cells;
  };
  ASSERT_TRUE(await([&] { return measured() > 2; })) << process->err();
  process->signal(SIGKILL);
  process->wait();
  EXPECT_TRUE(answers().empty()) << "no boundary has been confirmed yet";
  const auto before = cells_of(rows);
  ASSERT_GT(before.size(), 2u);
  // The folder records the bounds and the resolution.
  const Outcome outcome = place_.run({"capacity", "--resume", "out", "--device", "cpu"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  std::map<std::string, Json> cells;
  std::size_t closed = 0, used = 0;
  for (const Json& cell : cells_of(rows)) {
    EXPECT_TRUE(cells.emplace(cell.at("id"), cell).second) << "measured twice: " << cell.at("id");
    closed += cell.at("params").at("arrivals") == "closed" ? 1 : 0;
  }
  EXPECT_EQ(closed, 1u) << "the full window must be measured once";
  const auto found = answers();
  ASSERT_EQ(found.size(), 2u);
  std::set<std::string> bounds, tried;
  for (const Json& row : found) {
    ASSERT_EQ(row.at("status"), "ok") << row.at("reason");
    const std::string bound = row.at("slo").at("text");
    bounds.insert(bound);
    const Json& capacity = row.at("capacity");
    EXPECT_EQ(capacity.at("resolution"), 1);
    EXPECT_LT(capacity.at("low"), capacity.at("high"));
    EXPECT_FALSE(capacity.at("limit").get<std::string>().empty());
    if (bound == "p50:10s") {
      EXPECT_GT(capacity.at("low"), 0);
    } else {
      expect_reason_in_the_table(outcome, capacity.at("limit"));
    }
    EXPECT_EQ(capacity.at("tries"), capacity.at("probes").size());
    const auto marked =
        std::ranges::count_if(capacity.at("probes"), [](const Json& one) { return one.at("disturbed"); });
    EXPECT_EQ(capacity.at("disturbed"), marked);
    const std::string tries =
        std::to_string(capacity.at("probes").size()) + " tries, " + std::to_string(marked) + " of";
    EXPECT_NE(outcome.out.find(tries), std::string::npos) << outcome.out;
    std::map<Json, std::size_t> made;
    // Every probe has a row that was measured at its rate.
    for (const Json& probe : capacity.at("probes")) {
      EXPECT_TRUE(tried.insert(probe.at("id")).second) << "a probe is counted twice";
      ASSERT_TRUE(cells.contains(probe.at("id"))) << probe;
      EXPECT_EQ(cells[probe.at("id")].at("params").at("rate"), probe.at("rate"));
      ++made[probe.at("rate")];
    }
    // All tries of a rate form one test, and the two rates at the ends of the interval have the matching verdicts.
    for (const Json& one : capacity.at("rates")) {
      EXPECT_EQ(one.at("tries"), made[one.at("rate")]) << one;
      if (one.at("rate") != capacity.at("low") && one.at("rate") != capacity.at("high")) continue;
      EXPECT_EQ(one.at("verdict"), one.at("rate") == capacity.at("low") ? "sustained" : "not sustained");
    }
  }
  EXPECT_EQ(bounds, (std::set<std::string>{"p50:10s", "p50:1us"}));
  for (const Json& cell : before) used += tried.contains(cell.at("id")) ? 1 : 0;
  EXPECT_GT(used, 0u) << "probes from before the kill must count";
  EXPECT_NE(outcome.out.find("host_polled"), std::string::npos);
}

TEST_F(Capacity, DryRunPrintsPointsAndEstimatedTime) {
  const Outcome outcome = place_.run({"capacity", "s.json", "--device", "cpu", "--dry-run", "--slo", "p99:2ms"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* said : {"p99:2ms", "2 points", "about ", " s", "gpu_ring", "host_polled"})
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  EXPECT_EQ(place_.contents(), std::vector<std::string>{"s.json"});
}

TEST_F(Capacity, SearchIsUndecidedAtTimeLimit) {
  const Outcome outcome =
      place_.run({"capacity", "s.json", "--device", "cpu", "--slo", "p99:1ms", "--resolution", "1%", "--out", "out",
                  "--axis", "queue=host_polled", "--seconds-each", "1.5", "--seconds", "0.2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(place_.run({"validate", "out/rows.jsonl"}).code, 0);
  ASSERT_EQ(answers().size(), 1u);
  const Json capacity = answers()[0].at("capacity");
  EXPECT_TRUE(capacity.at("out_of_time")) << capacity;
  EXPECT_NE(capacity.at("limit").get<std::string>().find("the time limit was reached"), std::string::npos) << capacity;
  EXPECT_TRUE(capacity.at("undecided")) << capacity;
  EXPECT_EQ(capacity.at("between"), capacity.at("rates")) << "no rate is judged by so few tries";
  EXPECT_NE(outcome.out.find(": undecided: the time ran out"), std::string::npos) << outcome.out;
  const std::size_t tried = capacity.at("probes").size();
  EXPECT_GT(tried, 0u);
  EXPECT_LE(tried, 8u) << "each probe takes 0.2 s of the 1.5 s";
  // The resumed search ends without a new probe, because the time of earlier probes counts.
  const std::size_t rows = cells_of(place_ / "out" / "rows.jsonl").size();
  const Outcome again = place_.run({"capacity", "--resume", "out", "--device", "cpu"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(cells_of(place_ / "out" / "rows.jsonl").size(), rows);
}

TEST_F(Capacity, TimeLimitIsReportedIfNothingIsConfirmed) {
  // The full window alone exceeds the time limit. Then nothing can be confirmed, and the answer must state the reason.
  const Outcome outcome =
      place_.run({"capacity", "s.json", "--device", "cpu", "--slo", "p50:1us", "--resolution", "1%", "--out", "out",
                  "--axis", "queue=host_polled", "--seconds", "0.5", "--seconds-each", "0.01"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = answers().at(0);
  ASSERT_EQ(answer.at("status"), "ok") << answer.at("reason");
  const Json& capacity = answer.at("capacity");
  EXPECT_TRUE(capacity.at("out_of_time")) << capacity;
  EXPECT_NE(outcome.err.find("undecided: the time ran out"), std::string::npos) << outcome.err;
}

TEST(OpenLoadRun, TableBreaksDownTheResponseTime) {
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
