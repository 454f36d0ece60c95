#include "tests/cli/feedrate_process.hpp"

/// `feedrate limits` with the limit in tests/example/clock_limit.cpp, to which no other file refers.
namespace feedrate::cli_test {
namespace {

struct LimitsTest : ::testing::Test {
  void SetUp() override { place_.read_limits(); }
  Workplace place_{with_additions()};
};

TEST_F(LimitsTest, LimitDefinedInOneFileIsMeasuredAndLeavesNoKeys) {
  FEEDRATE_NEEDS_REDIS();
  RedisServer server;
  server.command({"LPUSH", "feedrate:tasks", "somebody's task"});
  const Outcome outcome = place_.run({"limits", "--device", "cpu", "--json", "--redis", server.url()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(server.integer({"LLEN", "feedrate:tasks"}), 1);
  EXPECT_EQ(server.integer({"DBSIZE"}), 1);
  std::map<std::string, Json> limits;
  for (const Json& row : rows_of(outcome.out)) {
    if (row["kind"] == "run") {
      EXPECT_GT(row["limits"]["clock_readings_per_second"], 0);
    } else {
      ASSERT_EQ(row["kind"], "limit");
      limits[row["limit"]["name"]] = row["limit"];
    }
  }
  const Json& found = limits["clock_readings_per_second"];
  EXPECT_EQ(found["unit"], "1/s");
  EXPECT_EQ(found["scope"], Json({{"of", "host"}}));
  EXPECT_EQ(found["readings"].size(), 5u);
  EXPECT_EQ(limits["redis_round_trip_ns"]["scope"], Json({{"of", "service"}, {"which", "redis"}}));
}

TEST_F(LimitsTest, CatalogueListsTheLimitWithoutMeasuring) {
  const Outcome outcome = place_.run({"list", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json limits = Json::parse(outcome.out)["limits"];
  const auto named =
      std::ranges::find(limits, "clock_readings_per_second", [](const Json& one) { return one["name"]; });
  ASSERT_NE(named, limits.end());
  EXPECT_EQ((*named)["method"], "readings of the clock by one thread");
}

TEST_F(LimitsTest, FormerNameOfTheCommandWorks) {
  const Outcome outcome = place_.run({"floors", "--help"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, place_.run({"limits", "--help"}).out);
}

}  // namespace
}  // namespace feedrate::cli_test
