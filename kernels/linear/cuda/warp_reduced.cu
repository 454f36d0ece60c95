#include "kernels/linear/by_products.hpp"
#include "kernels/linear/cuda/column_sums.cuh"
#include "kernels/linear/cuda/reductions.hpp"

/// The gradient of the bias from all SMs, and products from tiles in registers.
namespace feedrate::ladder {
namespace {

__global__ void sum_kernel(Matrix slope, Matrix partial) {
  sum_part(partial, slope.rows, [&](std::uint64_t row, std::uint64_t column) { return slope.load(0, row, column); });
}

}  // namespace

void sum_columns_by_blocks(Stream& stream, const LinearShape& shape, const LinearData& data) {
  stream.launch(
      KernelLaunch(sum_kernel, {blocks_of_sums(shape), threads_of_sums()}, nullptr, data.slope, data.partial));
  add_rows(stream, data.partial, data.gradient_bias);
}

namespace warp_reduced {
namespace {

const LinearRegistration registered(
    "warp_reduced",
    rung_of_parts(
        "warp_reduced",
        {.step = 3,
         .changes = "the gradient of the bias by blocks of 32 columns and 1/128 of the rows, added in a second "
                    "kernel; products by warp_tiles",
         .reason = "the sums of the columns read memory with all SMs instead of a few warps, still in a fixed order",
         .prediction = "10 times atomic_free; the gradient of the bias at 80 % of the memory's rate",
         .design = "rows=8192 in-features=4096 out-features=4096"},
        {.forward = "warp_tiles", .input = "warp_tiles", .weight = "warp_tiles", .bias = sum_columns_by_blocks},
        {Element::fp32}));

}  // namespace
}  // namespace warp_reduced
}  // namespace feedrate::ladder
