#include "tests/support/strategies.hpp"

namespace feedrate::test {
namespace {

struct Shape {
  std::uint64_t words;
  unsigned items;
  std::vector<std::uint32_t> rounds;  ///< indexed by stage; the last value also applies to all later stages
};

PipelineShape shape_of(const StrategyCase& test, const Shape& wanted, const Device& device) {
  PipelineShape shape;
  shape.stages = Pipelines::instance().get("--pipeline", test.pipeline).stages(test.own);
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    shape.rounds.push_back(wanted.rounds[std::min(s, wanted.rounds.size() - 1)]);
  }
  shape.words = wanted.words;
  shape.items = wanted.items;
  shape.blocks = device.kind() == "cpu" ? 1 : 4;
  return shape;
}

std::vector<Device*> devices_of(const StrategyEntry& entry, Device& device, Device& other) {
  return entry.devices > 1 ? std::vector<Device*>{&device, &other} : std::vector<Device*>{&device};
}

}  // namespace

std::vector<StrategyCase> strategy_cases() {
  std::vector<StrategyCase> cases;
  for (const auto& [strategy, entry] : Strategies::instance().entries()) {
    for (const auto& [pipeline, unused] : Pipelines::instance().entries()) {
      cases.push_back({strategy + "_" + pipeline, strategy, pipeline});
    }
  }
  return cases;
}

void expect_correct(const StrategyCase& test, Device& device, Device& other) {
  const StrategyEntry& entry = Strategies::instance().get("--strategy", test.strategy);
  const auto devices = devices_of(entry, device, other);
  for (const Shape& wanted : {Shape{1, 2, {1}}, Shape{100, 17, {5}}, Shape{4096, 40, {1, 20, 3}}}) {
    const PipelineShape shape = shape_of(test, wanted, device);
    if (const auto reason = why_unsupported(entry, shape, devices); !reason.empty()) GTEST_SKIP() << reason;
    Pipeline pipeline(shape, device);
    const auto strategy = entry.make({pipeline, devices, wanted.items, test.own});
    for (const unsigned items : {wanted.items, 2u, wanted.items}) {
      pipeline.begin(items);
      strategy->run(items);
      const Pipeline::Verdict verdict = pipeline.verify();
      EXPECT_EQ(verdict.wrong, 0u) << verdict.first;
    }
  }
}

std::vector<std::string> strategies_with_waits() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Strategies::instance().entries()) {
    if (!entry.waits.empty()) names.push_back(name);
  }
  return names;
}

void expect_corrupted_without_waits(const std::string& name, Device& device, Device& other) {
  const StrategyEntry& entry = Strategies::instance().get("--strategy", name);
  const auto devices = devices_of(entry, device, other);
  for (const std::string& without : entry.waits) {
    unsigned wrong = 0, possible = 0;
    // A slow first stage reveals that the second does not wait for it; a slow second stage reveals that its buffer is
    // overwritten too early. GPUs need more rounds: launching a kernel takes the host longer than 60 rounds take a GPU,
    // so that nothing would overlap.
    const std::uint32_t slow = device.kind() == "cuda" ? 10'000 : 60;
    const Shape wanted = without == kFree ? Shape{8192, 24, {1, slow}} : Shape{8192, 24, {slow, 1}};
    for (const auto& [pipeline_name, unused] : Pipelines::instance().entries()) {
      const PipelineShape shape = shape_of({name, name, pipeline_name}, wanted, device);
      if (!why_unsupported(entry, shape, devices).empty()) continue;
      ++possible;
      Pipeline pipeline(shape, device, without == kEarly ? EarlyKernels::do_not_wait : EarlyKernels::wait);
      const auto strategy = entry.make({pipeline, devices, wanted.items, {}, without});
      for (int run = 0; run < 10 && wrong == 0; ++run) {
        pipeline.begin(wanted.items);
        strategy->run(wanted.items);
        wrong = pipeline.verify().wrong;
      }
    }
    if (possible == 0) GTEST_SKIP() << name << " is not supported on this device";
    EXPECT_GT(wrong, 0u) << "nothing went wrong without the wait for " << without;
  }
}

}  // namespace feedrate::test
