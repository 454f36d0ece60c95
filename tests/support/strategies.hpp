#pragma once
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "variants/overlap/strategy.hpp"

namespace feedrate::test {

struct StrategyCase {
  std::string name, strategy, pipeline;
  Values own = {};
};
inline void PrintTo(const StrategyCase& c, std::ostream* out) { *out << c.name; }
inline std::string strategy_case_name(const testing::TestParamInfo<StrategyCase>& info) { return info.param.name; }

/// Returns every combination of a strategy and a pipeline.
std::vector<StrategyCase> strategy_cases();

/// Runs several numbers of items of several sizes, several times each, and expects correct results. Skips combinations
/// that the strategy does not support on these devices.
void expect_correct(const StrategyCase&, Device& device, Device& other);
/// Names of the strategies that have waits.
std::vector<std::string> strategies_with_waits();
/// For each wait of the strategy, runs pipelines without it until an item is wrong; fails if none becomes wrong. (Some
/// waits are needed only by some pipelines, because two stages that share a stream are already ordered.)
void expect_corrupted_without_waits(const std::string& strategy, Device& device, Device& other);

}  // namespace feedrate::test
