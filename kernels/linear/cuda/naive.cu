#include "kernels/launch.cuh"
#include "kernels/linear/by_products.hpp"

/// Every step a kernel of its own, gradients of shared parameters by atomic additions.
namespace feedrate::ladder::linear_naive {
namespace {

constexpr unsigned kSide = 32, kRows = 64;  // rows of the inputs per thread

/// Each thread adds the products of kRows rows to one element of the weight's gradient.
__global__ void weight_kernel(Matrix slope, Matrix x, Matrix gradient) {
  const std::uint64_t column = blockIdx.x * kSide + threadIdx.x, row = blockIdx.y * kSide + threadIdx.y;
  if (row >= gradient.rows || column >= gradient.columns) return;
  const std::uint64_t first = std::uint64_t{blockIdx.z} * kRows;
  float sum = 0;
  for (std::uint64_t at = first; at < first + kRows && at < x.rows; ++at) {
    sum += slope.load(0, at, row) * x.load(0, at, column);
  }
  atomicAdd(reinterpret_cast<float*>(gradient.at(0, row, column)), sum);
}

void weight_by_atomics(Stream& stream, const LinearShape& shape, const LinearData& data) {
  const auto blocks = [](std::uint64_t count, unsigned size) {
    return static_cast<unsigned>((count + size - 1) / size);
  };
  stream.fill(data.gradient_weight.data, 0, data.gradient_weight.bytes());
  stream.launch(KernelLaunch(
      weight_kernel, {{blocks(shape.in, kSide), blocks(shape.out, kSide), blocks(shape.rows, kRows)}, {kSide, kSide}},
      nullptr, data.slope, data.x, data.gradient_weight));
}

LinearRung rung() {
  LinearRung made = rung_of_parts(
      "naive",
      {.step = 1,
       .changes =
           "a kernel per step: product, bias with GELU, its slope, and gradients; atomic additions where threads "
           "share a parameter",
       .reason = "the baseline",
       .prediction = "1 to 2 % of the library; the gradients of weight and bias differ from run to run",
       .measured =
           "H200, linear fp32, rows 4096, in_features 1024, out_features 1024: 592 G/s, 0.0132 of the best library",
       .design = "rows=4096 in-features=1024 out-features=1024"},
      {.forward = "naive",
       .fuses_epilogue = false,
       .input = "naive",
       .weight_by = weight_by_atomics,
       .bias = sum_columns_by_atomics},
      {Element::fp32});
  made.text.repeats = false;
  return made;
}

const LinearRegistration registered("naive", rung());

}  // namespace
}  // namespace feedrate::ladder::linear_naive
