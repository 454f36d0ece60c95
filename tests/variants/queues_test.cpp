#include "tests/support/cells.hpp"

namespace feedrate::test {
namespace {

class CpuQueue : public testing::TestWithParam<Case> {};

TEST_P(CpuQueue, BringsEveryMessageBackOnceAndRight) {
  Session session("cpu", 0, {}, "test", brief(GetParam().messages));
  expect_clean(run_cell(session, GetParam().point));
}

INSTANTIATE_TEST_SUITE_P(Null, CpuQueue, testing::ValuesIn(cases_for("null", "cpu")), case_name);
INSTANTIATE_TEST_SUITE_P(HostPolled, CpuQueue, testing::ValuesIn(cases_for("host_polled", "cpu")), case_name);
INSTANTIATE_TEST_SUITE_P(GpuRing, CpuQueue, testing::ValuesIn(cases_for("gpu_ring", "cpu")), case_name);

}  // namespace
}  // namespace feedrate::test
