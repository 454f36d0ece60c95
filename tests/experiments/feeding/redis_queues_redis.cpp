#include "tests/support/long.hpp"
#include "tests/support/stages.hpp"

namespace feedrate::test {
namespace {

/// One private server and one session for all cases: a cell must leave nothing behind for the next cell.
class RedisQueue : public testing::TestWithParam<Case> {
 protected:
  static Session& session(std::uint64_t messages) {
    static std::unique_ptr<Session> with_server;
    if (!with_server || with_server->settings().messages != messages) {
      with_server = std::make_unique<Session>("feeding", "cpu", 0, ServiceChoices{}, "test", brief(messages));
    }
    return *with_server;
  }
};

TEST_P(RedisQueue, ReturnsEveryMessageOnceAndCorrect) { run_case(session(GetParam().messages), GetParam()); }

/// A third of the cases, for queues that differ from redis_list only in how workers claim tasks.
std::vector<Case> some_cases_for(const char* queue) {
  const std::vector<Case> all = cases_for(queue, "cpu");
  std::vector<Case> some;
  for (std::size_t i = 0; i < all.size(); i += 3) some.push_back(all[i]);
  return thinned(some, 4);
}

INSTANTIATE_TEST_SUITE_P(List, RedisQueue, testing::ValuesIn(thinned(cases_for("redis_list", "cpu"), 3)), case_name);
INSTANTIATE_TEST_SUITE_P(Reliable, RedisQueue, testing::ValuesIn(thinned(cases_for("redis_reliable", "cpu"), 5)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Priority, RedisQueue, testing::ValuesIn(some_cases_for("redis_priority")), case_name);
INSTANTIATE_TEST_SUITE_P(Pubsub, RedisQueue, testing::ValuesIn(some_cases_for("redis_pubsub")), case_name);
INSTANTIATE_TEST_SUITE_P(Stream, RedisQueue, testing::ValuesIn(thinned(cases_for("redis_stream", "cpu"), 4)),
                         case_name);

TEST(RedisOnce, IdsOfThePreviousCellAreForgotten) {
  Session session("feeding", "cpu", 0, {}, "test", brief(500));
  for (const char* queue : {"redis_reliable", "redis_priority"}) {
    Point point = lone(queue, "cpu");
    point.own["once"] = "60";
    for (int cell = 0; cell < 2; ++cell) expect_clean(run_cell(session, point));
  }
}

TEST(RedisQueues, PassThatTakesTooLongIsAbandonedAndLeavesNothingBehind) {
  RunSettings settings = brief(0);
  settings.seconds = 0.01;
  settings.longest_pass_seconds = 0.05;  // a window of single entries takes the server longer
  Session session("feeding", "cpu", 0, {}, "test", settings);
  Point point = lone("redis_stream", "cpu");
  point.window = 16384;
  const Json row = run_cell(session, point);
  EXPECT_EQ(row["status"], "invalid");
  EXPECT_EQ(row["cause"], "no_results");
  EXPECT_NE(row["reason"].get<std::string>().find("given up"), std::string::npos) << row["reason"];
  session.exchange_settings(brief(500));
  expect_clean(run_cell(session, lone("redis_stream", "cpu")));
}

TEST(RedisStages, StagesIncludeTheBroker) {
  Session session("feeding", "cpu", 0, {}, "test", brief(500));
  for (const char* queue : {"redis_list", "redis_reliable", "redis_stream"}) {
    const Json row = run_cell(session, lone(queue, "cpu"));
    expect_clean(row);
    EXPECT_EQ(names_of(row["details"]["stages_ns"]),
              (std::vector<std::string>{"sent", "brokered", "dequeued", "copied_in", "kernel_start", "kernel_end",
                                        "copied_out", "returned", "collected"}));
    const double whole = row["figures"]["latency_ns"]["mean"];
    EXPECT_NEAR(sum_of_means(row["details"]["stages_ns"]), whole, 0.02 * whole);
  }
}

}  // namespace
}  // namespace feedrate::test
