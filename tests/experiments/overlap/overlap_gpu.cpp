#include <gtest/gtest.h>

#include "experiments/harness/measure/session.hpp"
#include "tests/support/strategies.hpp"
#include "variants/overlap/strategy.hpp"

namespace feedrate::overlap {
namespace {

TEST(OverlapOnGpu, StageTimesMatchTheirCostAndEveryStrategyIsVerified) {
  if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  RunSettings settings;
  settings.seconds = 0.02;
  settings.keep_disturbed = true;
  Session session("overlap", "cuda", 0, {}, "test", settings);
  for (const auto& [strategy, entry] : Strategies::instance().entries()) {
    const Resolution point = session.resolve({{"strategy", strategy},
                                              {"pipeline", std::string("chain")},
                                              {"stages", std::uint64_t{3}},
                                              {"items", std::uint64_t{16}},
                                              {"cost-us", 60.0}});
    if (!point.impossible.empty()) continue;  // needs a second or a newer GPU
    const Json row = session.run_cell(point, 0);
    ASSERT_EQ(row["status"], "ok") << row.dump(1);
    EXPECT_EQ(row["details"]["verified"]["wrong"], 0) << strategy;
    for (const Json& stage : row["details"]["stages"]) {
      EXPECT_GT(stage["alone_ns"], 40e3) << strategy << ' ' << stage;
      EXPECT_LT(stage["alone_ns"], 90e3) << strategy << ' ' << stage;
    }
  }
}

}  // namespace
}  // namespace feedrate::overlap
