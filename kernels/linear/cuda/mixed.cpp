#include "kernels/linear/by_products.hpp"
#include "kernels/linear/cuda/reductions.hpp"

/// Mixed precision: products of 16-bit elements on tensor cores, sums in fp32.
namespace feedrate::ladder::mixed {
namespace {

const LinearRegistration registered(
    "mixed",
    rung_of_parts(
        "mixed",
        {.step = 4,
         .changes = "bf16 or fp16 on tensor cores: the persistent rung tma_store for all three products, "
                    "which reads transposed operands as they are",
         .reason = "tensor cores multiply 16 times as fast as fp32 units, and half the bytes move",
         .prediction = "12 times warp_reduced",
         .measured =
             "H200, linear bf16, rows 8192, in_features 4096, out_features 4096: 542 T/s, 0.838 of the best library",
         .design = "rows=8192 in-features=4096 out-features=4096 dtype=bf16"},
        {.forward = "tma_store", .input = "tma_store", .weight = "tma_store", .bias = sum_columns_by_blocks},
        {Element::bf16, Element::fp16}));

}  // namespace
}  // namespace feedrate::ladder::mixed
