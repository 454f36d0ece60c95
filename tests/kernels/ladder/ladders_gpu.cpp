#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "kernels/linear/linear.hpp"
#include "kernels/matmul/matmul.hpp"
#include "tests/support/ladder_checks.hpp"

namespace feedrate {
namespace {

using test::LadderChecks;

/// Rungs and peers in groups: racecheck does not follow bulk copies, and libraries are not ours to check.
std::vector<std::string> group(const std::string& ladder, const std::string& wanted) {
  static const std::set<std::string> kBulk{"tma_wgmma", "warp_specialised", "persistent", "multicast", "tma_store",
                                           "mixed",     "fused_backward",   "skinny"};
  std::vector<std::string> names;
  for (const ladder::RungInfo& rung : ladder::Ladders::instance().get("", ladder).rungs()) {
    const std::string found = rung.text.is_peer() ? "library" : kBulk.contains(rung.name) ? "bulk" : "plain";
    if (rung.text.device == "cuda" && found == wanted) names.push_back(rung.name);
  }
  return names;
}

class GpuMatmul : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Device> device = open_device("cuda");
};

TEST_P(GpuMatmul, SolvesEveryProblem) {
  LadderChecks checks(*device, "matmul", GetParam());
  for (const std::string& dtype : ladder::element_names()) test::check_matmul(checks, dtype.c_str());
  if (checks.solved() == 0) GTEST_SKIP() << "this rung or peer is not available on this machine";
}

/// Shapes at which other implementations hung or were silently wrong, and shapes of several tiles with ragged edges.
TEST_P(GpuMatmul, SolvesLargeProblems) {
  LadderChecks checks(*device, "matmul", GetParam());
  for (const std::string& dtype : ladder::element_names()) {
    for (const auto& [m, n, k] :
         std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>{{192, 3072, 128},
                                                                              {192, 3072, 256},
                                                                              {8191, 136, 72},
                                                                              {1000, 1016, 1024},
                                                                              {128, 8184, 520},
                                                                              {16, 8192, 4096}}) {
      for (const char* inputs : {"normal", "whole"}) {
        checks.solves(
            LadderChecks::with(LadderChecks::sizes(m, n, k), {{"dtype", dtype}, {"inputs", std::string(inputs)}}));
      }
    }
  }
}

/// Rungs add in a fixed order.
TEST_P(GpuMatmul, RepeatsItsResultBitForBit) {
  const ladder::MatmulRung& rung = ladder::MatmulRungs::instance().get("", GetParam());
  if (rung.text.is_peer()) GTEST_SKIP() << "libraries need not repeat their results";
  for (const ladder::Element element : {ladder::Element::fp32, ladder::Element::bf16}) {
    const ladder::MatmulShape shape{.m = 120, .n = 1032, .k = 776, .element = element};
    if (!rung.why_unsupported(shape, device->info()).empty()) continue;
    const auto stream = device->stream();
    const ladder::MatrixMemory left(*device, shape.left()), right(*device, shape.right()),
        result(*device, shape.result());
    ladder::fill(*stream, left.matrix(), ladder::Inputs::normal, 1);
    ladder::fill(*stream, right.matrix(), ladder::Inputs::normal, 2);
    const auto product = rung.make(shape, *device);
    std::vector<std::byte> first(result.memory().size()), again(first.size());
    for (unsigned run = 0; run < 20; ++run) {
      result.poison(*stream);
      product->queue(*stream, {left.matrix(), right.matrix(), result.matrix()});
      stream->copy_to_host(run == 0 ? first.data() : again.data(), result.memory().data(), first.size());
      stream->synchronize();
      if (run == 0) continue;
      ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size()), 0) << "run " << run;
    }
  }
}

constexpr auto kName = [](const auto& each) { return each.param; };
INSTANTIATE_TEST_SUITE_P(Plain, GpuMatmul, testing::ValuesIn(group("matmul", "plain")), kName);
INSTANTIATE_TEST_SUITE_P(Bulk, GpuMatmul, testing::ValuesIn(group("matmul", "bulk")), kName);
INSTANTIATE_TEST_SUITE_P(Library, GpuMatmul, testing::ValuesIn(group("matmul", "library")), kName);

class GpuLinear : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Device> device = open_device("cuda");
};

TEST_P(GpuLinear, SolvesEveryPass) {
  LadderChecks checks(*device, "linear", GetParam());
  for (const char* dtype : {"fp32", "bf16", "fp16"}) {
    test::check_linear(checks, dtype);
    checks.solves({{"rows", std::uint64_t{1024}},
                   {"in-features", std::uint64_t{520}},
                   {"out-features", std::uint64_t{776}},
                   {"dtype", std::string(dtype)}});
  }
  EXPECT_GT(checks.solved(), 0u);
}

/// Rungs that promise it repeat all gradients bit for bit.
TEST_P(GpuLinear, RepeatsItsResultsIfItSaysSo) {
  const ladder::LinearRung& rung = ladder::LinearRungs::instance().get("", GetParam());
  const ladder::LinearShape shape{.rows = 512, .in = 264, .out = 392, .pass = ladder::Pass::all};
  ladder::LinearShape tensor = shape;
  tensor.element = ladder::Element::bf16;
  for (const ladder::LinearShape& each : {shape, tensor}) {
    if (!rung.text.repeats || !rung.why_unsupported(each, device->info()).empty()) continue;
    const auto stream = device->stream();
    const auto memory = [&](const ladder::Matrix& matrix, std::uint64_t seed) {
      ladder::MatrixMemory made(*device, matrix);
      ladder::fill(*stream, made.matrix(), ladder::Inputs::normal, seed);
      return made;
    };
    const ladder::MatrixMemory x = memory(each.x(), 1), weight = memory(each.weight(), 2),
                               bias = memory(each.bias(), 3), gradient_y = memory(each.y(), 4),
                               before = memory(each.y(), 5), y = memory(each.y(), 6), slope = memory(each.y(), 7),
                               gradient_x = memory(each.x(), 8), gradient_weight = memory(each.weight(), 9),
                               gradient_bias = memory(each.bias(), 10), partial = memory(each.partial(), 11);
    const auto layer = rung.make(each, *device);
    std::vector<std::vector<std::byte>> first;
    for (unsigned run = 0; run < 20; ++run) {
      layer->queue(*stream, {x.matrix(), weight.matrix(), bias.matrix(), gradient_y.matrix(), before.matrix(),
                             y.matrix(), gradient_x.matrix(), gradient_weight.matrix(), gradient_bias.matrix(),
                             slope.matrix(), partial.matrix()});
      std::vector<std::vector<std::byte>> now;
      for (const ladder::MatrixMemory* result : {&y, &gradient_x, &gradient_weight, &gradient_bias}) {
        now.emplace_back(result->memory().size());
        stream->copy_to_host(now.back().data(), result->memory().data(), now.back().size());
      }
      stream->synchronize();
      if (run == 0) first = now;
      ASSERT_EQ(now, first) << "run " << run;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plain, GpuLinear, testing::ValuesIn(group("linear", "plain")), kName);
INSTANTIATE_TEST_SUITE_P(Bulk, GpuLinear, testing::ValuesIn(group("linear", "bulk")), kName);

}  // namespace
}  // namespace feedrate
