#include <thread>

#include "tests/support/cells.hpp"
#include "tests/support/long.hpp"

namespace feedrate::test {
namespace {

class SessionLimits : public testing::Test {
 protected:
  Session session{"count", "cpu", 0, {}, "test", settings()};
  const std::vector<Resolution> cells{session.resolve({})};
  static RunSettings settings() {
    RunSettings made = brief();
    made.seconds = 0.01;
    return made;
  }
};

TEST_F(SessionLimits, LimitsAreReadFiveTimesAndRowsGiveTheRange) {
  for (const Json& row : session.measure_limits(cells)) {
    const Json& limit = row["limit"];
    const auto readings = limit["readings"].get<std::vector<double>>();
    ASSERT_EQ(readings.size(), 5u) << limit;
    EXPECT_EQ(limit["least"], *std::ranges::min_element(readings));
    EXPECT_EQ(limit["greatest"], *std::ranges::max_element(readings));
    EXPECT_EQ(session.limits().at(limit["name"]), limit["value"]);
  }
  EXPECT_EQ(session.run_cell(cells[0], 0)["limit_rounds"], 5);
}

TEST_F(SessionLimits, LimitsAreReadAgainOccasionallyBetweenCells) {
  if (!long_tests()) GTEST_SKIP() << "takes a minute; only in long runs";
  session.measure_limits(cells);
  const auto begin = std::chrono::steady_clock::now();
  Json row = session.run_cell(cells[0], 0);
  EXPECT_EQ(row["limit_rounds"], 5) << "limits must not be read for every cell";
  while (row["limit_rounds"] == 5 && std::chrono::steady_clock::now() - begin < std::chrono::minutes(4)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    row = session.run_cell(cells[0], 1);
  }
  EXPECT_EQ(row["limit_rounds"], 6);
  for (const Json& row : session.limit_rows()) EXPECT_EQ(row["limit"]["readings"].size(), 6u) << row;
}

}  // namespace
}  // namespace feedrate::test
