#include "tests/cli/feedrate_process.hpp"

/// The experiment in tests/example/errand_experiment.cpp: load without messages.
namespace feedrate::cli_test {
namespace {

struct ErrandsTest : ::testing::Test {
  Json run(const Words& more) {
    Words words{"run", "--experiment", "errands", "--device", "cpu", "--json", "--seconds", "0.3"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = place_.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return rows_of(outcome.out).back();
  }
  Workplace place_{with_additions()};
};

TEST_F(ErrandsTest, OpenLoadIsTimedFromTheDueTime) {
  const Json row = run({"--errand-us", "2000", "--arrivals", "poisson", "--rate", "100"});
  EXPECT_NE(row["status"], "failed") << row["reason"];
  const Json& figures = row["figures"];
  for (const char* name : {"latency_ns", "service_ns", "send_lag_ns"}) EXPECT_TRUE(figures.contains(name)) << row;
  EXPECT_GE(figures["service_ns"]["p50"], 1'900'000) << "an errand takes 2 ms";
  EXPECT_GE(figures["latency_ns"]["p99"], figures["service_ns"]["p50"]);
  EXPECT_EQ(row["details"]["load"]["unsent"], 0);
}

TEST_F(ErrandsTest, LoadAboveTheClerksRateIsUnsustainable) {
  const Json row = run({"--errand-us", "2000", "--arrivals", "constant", "--rate", "2000"});
  EXPECT_EQ(row["status"], "unsustainable") << row;
}

TEST_F(ErrandsTest, ClosedLoadDoesNotExceedTheClerksRate) {
  const Json row = run({"--errand-us", "2000", "--window", "4"});
  const double rate = row["figures"]["errands_per_second"];
  EXPECT_LE(rate, 520);
  EXPECT_GT(rate, 0);
}

TEST_F(ErrandsTest, LoadWithoutARequiredOptionIsRejected) {
  const Outcome outcome = place_.run({"run", "--experiment", "errands", "--device", "cpu", "--arrivals", "poisson"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--arrivals poisson needs --rate"), std::string::npos) << outcome.err;
}

TEST_F(ErrandsTest, CapacityIsFound) {
  place_.write("s.json",
               R"({"experiment": "errands", "axes": {"errand-us": 2000}, "run": {"seconds": 0.2, "warmup": 0}})");
  const Outcome outcome = place_.run({"capacity", "s.json", "--device", "cpu", "--slo", "p50:1s", "--resolution", "50%",
                                      "--out", "out", "--keep-disturbed", "--seconds-each", "3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  bool found = false;
  for (const Json& row : rows_of(read_text(place_ / "out" / "rows.jsonl"))) {
    if (row.at("kind") != "capacity") continue;
    found = true;
    ASSERT_EQ(row.at("status"), "ok") << row.at("reason");
    EXPECT_LE(row.at("capacity").at("low"), 700) << "the clerk runs 500 errands per second";
  }
  EXPECT_TRUE(found) << outcome.out;
}

}  // namespace
}  // namespace feedrate::cli_test
