#include "tests/support/cells.hpp"

namespace feedrate::test {
namespace {

/// One private server and one session for all cases: cells must not leave anything behind for the next.
class RedisQueue : public testing::TestWithParam<Case> {
 protected:
  static Session& session(std::uint64_t messages) {
    static std::unique_ptr<Session> with_server;
    if (!with_server || with_server->settings().messages != messages) {
      with_server = std::make_unique<Session>("cpu", 0, RedisSettings{}, "test", brief(messages));
    }
    return *with_server;
  }
};

TEST_P(RedisQueue, BringsEveryMessageBackOnceAndRight) {
  expect_clean(run_cell(session(GetParam().messages), GetParam().point));
}

INSTANTIATE_TEST_SUITE_P(List, RedisQueue, testing::ValuesIn(cases_for("redis_list", "cpu")), case_name);
INSTANTIATE_TEST_SUITE_P(Stream, RedisQueue, testing::ValuesIn(cases_for("redis_stream", "cpu")), case_name);

}  // namespace
}  // namespace feedrate::test
