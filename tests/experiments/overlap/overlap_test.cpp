#include <gtest/gtest.h>

#include <numeric>

#include "common/error.hpp"
#include "experiments/harness/measure/session.hpp"
#include "experiments/overlap/stage_times.hpp"
#include "variants/overlap/strategy.hpp"

namespace feedrate::overlap {
namespace {

TEST(Costs, CostsKeepTheirAverageForEveryBalance) {
  for (const std::string& balance : balances()) {
    for (const std::size_t kernels : {1u, 2u, 3u, 4u}) {
      const auto costs = spread_costs(balance, 50, kernels);
      EXPECT_NEAR(std::accumulate(costs.begin(), costs.end(), 0.0), 50.0 * static_cast<double>(kernels), 1e-9)
          << balance;
    }
  }
  EXPECT_EQ(spread_costs("even", 50, 3), (std::vector<double>{50, 50, 50}));
  EXPECT_EQ(spread_costs("last", 50, 3), (std::vector<double>{30, 30, 90}));
  EXPECT_EQ(spread_costs("rising", 50, 3), (std::vector<double>{25, 50, 75}));
  EXPECT_THROW(spread_costs("odd", 50, 3), BadInput);
}

TEST(Ideal, IdealTimeIsTheFirstItemPlusTheSlowestStagePerFurtherItem) {
  EXPECT_DOUBLE_EQ(ideal_ns(std::vector<double>{10, 30, 20}, 1), 60);
  EXPECT_DOUBLE_EQ(ideal_ns(std::vector<double>{10, 30, 20}, 5), 60 + 4 * 30);
}

Json cell(Session& session, Values values) {
  const Resolution resolved = session.resolve(values);
  EXPECT_EQ(resolved.impossible, "");
  return session.run_cell(resolved, 0);
}

RunSettings brief() {
  RunSettings settings;
  settings.seconds = 0.02;
  settings.keep_disturbed = true;
  return settings;
}

TEST(Overlap, EveryPossibleStrategyIsVerified) {
  Session session("overlap", "cpu", 0, {}, "test", brief());
  for (const auto& [strategy, entry] : Strategies::instance().entries()) {
    const Values point{{"strategy", strategy},
                       {"pipeline", std::string("producer_consumer")},
                       {"item", std::uint64_t{4096}},
                       {"items", std::uint64_t{8}},
                       {"cost-us", 20.0}};
    if (strategy == "pdl") {
      EXPECT_EQ(session.resolve(point).impossible, "strategy pdl needs a GPU of compute capability 9.0 or later");
      continue;
    }
    const Json row = cell(session, point);
    ASSERT_EQ(row["status"], "ok") << row.dump(1);
    EXPECT_GT(row["figures"]["items_per_second"], 0);
    EXPECT_GT(row["figures"]["speedup"], 0);
    EXPECT_EQ(row["details"]["verified"]["wrong"], 0);
    EXPECT_EQ(row["details"]["stages"].size(), 2u);
    EXPECT_GT(row["details"]["stages"][0]["alone_ns"], 0);
    EXPECT_GT(row["details"]["ideal_ns"]["contended"], 0);
  }
}

TEST(Overlap, ImpossiblePointsStateTheReason) {
  Session session("overlap", "cpu", 0, {}, "test", brief());
  const auto why = [&](Values values) { return session.resolve(values).impossible; };
  EXPECT_EQ(why({{"strategy", std::string("persistent")}, {"pipeline", std::string("copy_process_copy")}}),
            "strategy persistent runs kernels only; this pipeline copies from or to the host");
  EXPECT_NE(why({{"item", std::uint64_t{256} << 20}, {"items", std::uint64_t{4096}}}).find("are more than the"),
            std::string::npos);
  EXPECT_NE(why({{"strategy", std::string("peer_copy")}, {"pipeline", std::string("copy_process_copy")}}), "");
}

}  // namespace
}  // namespace feedrate::overlap
