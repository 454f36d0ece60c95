#include <gtest/gtest.h>

#include "tests/support/ladder_checks.hpp"

namespace feedrate {
namespace {

class CpuMatmul : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Device> device = open_cpu_device();
};

TEST_P(CpuMatmul, SolvesEveryProblem) {
  test::LadderChecks checks(*device, "matmul", GetParam());
  test::check_matmul(checks, "fp32");
  if (checks.solved() == 0) GTEST_SKIP() << "this rung or peer is not available";
}

TEST_P(CpuMatmul, RejectsOtherElementTypes) {
  const auto problem = ladder::Ladders::instance().get("", "matmul").make({{"dtype", std::string("bf16")}}, *device);
  EXPECT_NE(problem->why_unsupported(GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Each, CpuMatmul, testing::ValuesIn(test::rungs_for("matmul", "cpu")),
                         [](const auto& each) { return each.param; });

TEST(MatmulRungs, RungsOfOtherDevicesAreRejectedByName) {
  const auto device = open_cpu_device();
  const auto problem = ladder::Ladders::instance().get("", "matmul").make({}, *device);
  for (const std::string& rung : test::rungs_for("matmul", "cuda")) {
    EXPECT_EQ(problem->why_unsupported(rung), "rung " + rung + " runs with --device cuda");
  }
}

TEST(MatmulRungs, EveryRungExplainsItself) {
  unsigned last = 0;
  for (const ladder::RungInfo& rung : ladder::Ladders::instance().get("", "matmul").rungs()) {
    EXPECT_NE(rung.text.changes, "") << rung.name;
    if (rung.text.is_peer()) continue;
    EXPECT_NE(rung.text.reason, "") << rung.name;
    EXPECT_NE(rung.text.prediction, "") << rung.name;
    EXPECT_NE(rung.text.design, "") << rung.name;
    if (rung.text.step == 1) last = 0;
    EXPECT_EQ(rung.text.step, last + 1) << rung.name;
    last = rung.text.step;
  }
}

}  // namespace
}  // namespace feedrate
