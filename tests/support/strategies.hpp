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

/// Every strategy with every pipeline.
std::vector<StrategyCase> strategy_cases();

/// Runs items of several sizes and numbers, several times each; skips what the strategy refuses on these devices.
void expect_right(const StrategyCase&, Device& device, Device& other);
/// By name, the strategies that wait for anything.
std::vector<std::string> strategies_with_waits();
/// Runs pipelines with each of the strategy's waits left out until an item is wrong; none may stay unnoticed. (A wait
/// may be needed by some pipelines only: where two stages share a stream, that is an order, too.)
void expect_corrupted_without_waits(const std::string& strategy, Device& device, Device& other);

}  // namespace feedrate::test
