#include <gtest/gtest.h>

#include "kernels/linear/linear.hpp"
#include "tests/support/ladder_checks.hpp"

namespace feedrate {
namespace {

class CpuLinear : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Device> device = open_cpu_device();
};

TEST_P(CpuLinear, SolvesEveryPass) {
  test::LadderChecks checks(*device, "linear", GetParam());
  test::check_linear(checks, "fp32");
  if (checks.solved() == 0) GTEST_SKIP() << "this rung is not available";
}

INSTANTIATE_TEST_SUITE_P(Each, CpuLinear, testing::ValuesIn(test::rungs_for("linear", "cpu")),
                         [](const auto& each) { return each.param; });

/// A rung that is wrong in one way.
class FaultyLinear final : public ladder::Linear {
 public:
  FaultyLinear(std::unique_ptr<ladder::Linear> right, ladder::Matrix ladder::LinearData::*matrix)
      : right_(std::move(right)), matrix_(matrix) {}
  void queue(Stream& stream, const ladder::LinearData& data) override {
    right_->queue(stream, data);
    stream.synchronize();
    const ladder::Matrix& matrix = data.*matrix_;
    store_element(matrix.at(0, matrix.rows - 1, matrix.columns / 2), matrix.element, 1000);
  }

 private:
  std::unique_ptr<ladder::Linear> right_;
  ladder::Matrix ladder::LinearData::*matrix_;
};

TEST(LinearProblem, WrongElementOfEachResultIsFound) {
  using ladder::LinearData;
  const auto device = open_cpu_device();
  for (const auto& [matrix, part] : std::vector<std::pair<ladder::Matrix LinearData::*, std::string>>{
           {&LinearData::y, "forward"},
           {&LinearData::gradient_x, "backward_input"},
           {&LinearData::gradient_weight, "backward_weight"},
           {&LinearData::gradient_bias, "backward_bias"},
           {&LinearData::gradient_y, "1 bytes outside the results, or elements of the inputs, were changed"}}) {
    ladder::LinearRungs::instance().add(
        "faulty " + part,
        {.text = {.device = "cpu"},
         .why_unsupported = [](const auto&, const auto&) { return std::string(); },
         .make = [matrix](const ladder::LinearShape& shape, Device& on) -> std::unique_ptr<ladder::Linear> {
           const auto& right = ladder::LinearRungs::instance().get("", "cpu_naive");
           return std::make_unique<FaultyLinear>(right.make(shape, on), matrix);
         }},
        __FILE__);
    const auto problem =
        ladder::Ladders::instance()
            .get("", "linear")
            .make(
                {{"rows", std::uint64_t{20}}, {"in-features", std::uint64_t{24}}, {"out-features", std::uint64_t{28}}},
                *device);
    problem->prepare(1, 3);
    const auto runner = problem->make("faulty " + part);
    const std::string wrong = problem->verify("faulty " + part, *runner, 0).wrong;
    EXPECT_EQ(wrong.find(part), 0u) << wrong;
  }
}

}  // namespace
}  // namespace feedrate
