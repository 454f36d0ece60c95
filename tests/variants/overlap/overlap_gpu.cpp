#include <gtest/gtest.h>

#include "tests/support/strategies.hpp"

namespace feedrate::test {
namespace {

/// The first GPU and, if there is one, a second GPU; otherwise the first GPU twice.
class Gpus : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    device = open_device("cuda");
    try {
      other = open_device("cuda", 1);
    } catch (const std::exception&) {
      one = true;
    }
    device->use_in_this_thread();
  }
  void needs_two_for(const std::string& strategy) const {
    if (one && Strategies::instance().get("--strategy", strategy).devices > 1) GTEST_SKIP() << "only one GPU";
  }
  Device& second() { return one ? *device : *other; }
  std::unique_ptr<Device> device, other;
  bool one = false;
};

class GpuStrategy : public Gpus, public testing::WithParamInterface<StrategyCase> {};

TEST_P(GpuStrategy, PassesEveryItemThroughEveryStageOnce) {
  needs_two_for(GetParam().strategy);
  if (!IsSkipped()) expect_correct(GetParam(), *device, second());
}

INSTANTIATE_TEST_SUITE_P(All, GpuStrategy, testing::ValuesIn(strategy_cases()), strategy_case_name);

class GpuStrategyWithoutAWait : public Gpus, public testing::WithParamInterface<std::string> {};

TEST_P(GpuStrategyWithoutAWait, CorruptsItems) {
  needs_two_for(GetParam());
  if (!IsSkipped()) expect_corrupted_without_waits(GetParam(), *device, second());
}

INSTANTIATE_TEST_SUITE_P(Each, GpuStrategyWithoutAWait, testing::ValuesIn(strategies_with_waits()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace feedrate::test
