#include "tests/support/cells.hpp"
#include "tests/support/points.hpp"

namespace feedrate::test {
namespace {

class GpuQueue : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_P(GpuQueue, ReturnsEveryMessageOnceAndCorrect) {
  Session session("feeding", "cuda", 0, {}, "test", brief(10 * GetParam().messages));
  run_case(session, GetParam());
}

INSTANTIATE_TEST_SUITE_P(HostPolled, GpuQueue, testing::ValuesIn(cases_for("host_polled", "cuda")), case_name);
INSTANTIATE_TEST_SUITE_P(GpuRing, GpuQueue, testing::ValuesIn(cases_for("gpu_ring", "cuda")), case_name);
INSTANTIATE_TEST_SUITE_P(List, GpuQueue, testing::ValuesIn(cases_for("redis_list", "cuda")), case_name);
INSTANTIATE_TEST_SUITE_P(Stream, GpuQueue, testing::ValuesIn(cases_for("redis_stream", "cuda")), case_name);

TEST_F(GpuQueue, RingRestartsManyTimesInOneProcess) {
  Session session("feeding", "cuda", 0, {}, "test", brief(1000));
  Point point;
  for (unsigned i = 0; i < 100; ++i) expect_clean(run_cell(session, point, i));
}

TEST_F(GpuQueue, TooManyLanesAreRejectedBeforeTheyStart) {
  Session session("feeding", "cuda", 0, {}, "test", brief());
  Point point;
  test::set(point, "lanes", 4096);
  point.block = 1024;
  const Json row = run_cell(session, point);
  EXPECT_EQ(row["status"], "skipped");
  EXPECT_NE(row["reason"].get<std::string>().find("cannot be resident at once"), std::string::npos) << row["reason"];
}

}  // namespace
}  // namespace feedrate::test
