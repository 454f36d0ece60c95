#include <gtest/gtest.h>

#include "tests/support/strategies.hpp"

namespace feedrate::test {
namespace {

class CpuStrategy : public testing::TestWithParam<StrategyCase> {
 protected:
  std::unique_ptr<Device> device = open_cpu_device(), other = open_cpu_device();
};

TEST_P(CpuStrategy, PassesEveryItemThroughEveryStageOnce) { expect_correct(GetParam(), *device, *other); }

INSTANTIATE_TEST_SUITE_P(All, CpuStrategy, testing::ValuesIn(strategy_cases()), strategy_case_name);

class CpuStrategyWithoutAWait : public testing::TestWithParam<std::string> {};

// Each wait is needed: without it, results are wrong. Under ThreadSanitizer a missing wait is reported as a data race.
TEST_P(CpuStrategyWithoutAWait, CorruptsItems) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer reports the planted race";
#endif
  const auto device = open_cpu_device(), other = open_cpu_device();
  expect_corrupted_without_waits(GetParam(), *device, *other);
}

INSTANTIATE_TEST_SUITE_P(Each, CpuStrategyWithoutAWait, testing::ValuesIn(strategies_with_waits()),
                         [](const auto& info) { return info.param; });

TEST(ItemSums, MatchSumsComputedWordByWord) {
  const std::vector<std::uint32_t> rounds{3, 1, 1000};
  Affine map;
  for (unsigned s = 0; s < rounds.size(); ++s) map = map.then(stage_map(s, rounds[s]));
  for (const std::uint64_t words : {0, 1, 2, 3, 4, 5, 6, 7, 37, 3000}) {
    const ItemSums sums(words, map);
    for (const std::uint64_t id : {0ull, 1ull, 123456789ull}) {
      std::uint64_t sum = 0;
      for (std::uint64_t w = 0; w < words; ++w) {
        std::uint64_t word = item_base(id) + w * kItemStep;
        for (unsigned s = 0; s < rounds.size(); ++s) word = through_stage(word, s, rounds[s]);
        sum += word * weight_of(w);
      }
      EXPECT_EQ(sums(id), sum) << words;
    }
  }
}

TEST(Pipeline, DetectsSwappedWordsAndStaleResults) {
  const auto device = open_cpu_device();
  Pipeline pipeline({Pipelines::instance().get("--pipeline", "copy_process_copy").stages({}), {1, 1, 1}, 64, 1, 3},
                    *device);
  const auto serial = Strategies::instance().get("--strategy", "serial").make({pipeline, std::array{device.get()}, 3});
  pipeline.begin(3);
  serial->run(3);
  EXPECT_EQ(pipeline.verify().wrong, 0u);
  auto* const words = reinterpret_cast<std::uint64_t*>(pipeline.result(1) + sizeof(ItemHeader));
  std::swap(words[5], words[6]);
  const Pipeline::Verdict verdict = pipeline.verify();
  EXPECT_EQ(verdict.wrong, 1u);
  EXPECT_TRUE(verdict.first.starts_with("item 1 has id 1 and checksum")) << verdict.first;
  std::swap(words[5], words[6]);
  // A result of the previous run does not count for this run.
  pipeline.begin(3);
  EXPECT_EQ(pipeline.verify().wrong, 3u);
}

}  // namespace
}  // namespace feedrate::test
