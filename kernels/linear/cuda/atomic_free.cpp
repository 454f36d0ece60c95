#include "kernels/linear/by_products.hpp"

/// One thread owns each result, and the forward pass is one kernel.
namespace feedrate::ladder::atomic_free {
namespace {

const LinearRegistration registered(
    "atomic_free",
    rung_of_parts(
        "atomic_free",
        {.step = 2,
         .changes = "bias, GELU and the value kept for the backward pass in the product's epilogue; each "
                    "gradient from one thread; coalesced loads",
         .reason = "the results need not be written, read and written again; additions in a fixed order repeat "
                   "bit for bit and wait for no other thread",
         .prediction = "6 times naive; the gradient of the bias has only one thread per column",
         .measured = "H200, linear fp32, rows 4096, in_features 1024, out_features 1024: 1.22 T/s, 2.05 times naive, "
                     "0.0273 of the best library",
         .design = "rows=4096 in-features=1024 out-features=1024"},
        {.forward = "coalesced", .input = "coalesced", .weight = "coalesced", .bias = sum_columns_by_threads},
        {Element::fp32}));

}  // namespace
}  // namespace feedrate::ladder::atomic_free
