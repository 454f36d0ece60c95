#include <thread>

#include "tests/support/cells.hpp"
#include "tests/support/long.hpp"

namespace feedrate::test {
namespace {

class SessionFloors : public testing::Test {
 protected:
  Session session{"count", "cpu", 0, {}, "test", settings()};
  const std::vector<Resolution> cells{session.resolve({})};
  static RunSettings settings() {
    RunSettings made = brief();
    made.seconds = 0.01;
    return made;
  }
};

TEST_F(SessionFloors, AreReadFiveTimesAndRowsGiveTheRange) {
  for (const Json& row : session.measure_floors(cells)) {
    const Json& floor = row["floor"];
    const auto readings = floor["readings"].get<std::vector<double>>();
    ASSERT_EQ(readings.size(), 5u) << floor;
    EXPECT_EQ(floor["least"], *std::ranges::min_element(readings));
    EXPECT_EQ(floor["greatest"], *std::ranges::max_element(readings));
    EXPECT_EQ(session.floors().at(floor["name"]), floor["value"]);
  }
  EXPECT_EQ(session.run_cell(cells[0], 0)["floor_rounds"], 5);
}

TEST_F(SessionFloors, AreReadAgainNowAndThenBetweenCells) {
  if (!long_tests()) GTEST_SKIP() << "a minute: in long runs";
  session.measure_floors(cells);
  const auto begin = std::chrono::steady_clock::now();
  Json row = session.run_cell(cells[0], 0);
  EXPECT_EQ(row["floor_rounds"], 5) << "not for every cell";
  while (row["floor_rounds"] == 5 && std::chrono::steady_clock::now() - begin < std::chrono::minutes(4)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    row = session.run_cell(cells[0], 1);
  }
  EXPECT_EQ(row["floor_rounds"], 6);
  for (const Json& floor : session.floor_rows()) EXPECT_EQ(floor["floor"]["readings"].size(), 6u) << floor;
}

}  // namespace
}  // namespace feedrate::test
