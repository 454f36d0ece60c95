#include "kernels/linear/by_products.hpp"
#include "kernels/linear/cuda/reductions.hpp"

/// The gradient of a small weight from many rows: parts of the rows in parallel, added in order.
namespace feedrate::ladder::split_k {
namespace {

const LinearRegistration registered(
    "split_k",
    rung_of_parts("split_k",
                  {.step = 5,
                   .changes = "the weight's gradient as eight products of an eighth of the rows, added in order",
                   .reason = "a weight of 512 x 512 elements has 16 tiles of 128 x 128, too few for 132 SMs; "
                             "with fixed parts the result repeats bit for bit",
                   .prediction = "4 times warp_reduced at its design size; slower for large weights, whose "
                                 "tiles fill the GPU",
                   .measured = "H200, linear fp32, rows 65536, in_features 512, out_features 512, pass backward "
                               "weight: 36.2 T/s, 6.26 times warp_reduced, 0.796 of the best library",
                   .design = "rows=65536 in-features=512 out-features=512 pass=backward_weight"},
                  {.forward = "async_copies",
                   .input = "async_copies",
                   .weight = "async_copies",
                   .weight_splits = 8,
                   .bias = sum_columns_by_blocks},
                  {Element::fp32}));

}  // namespace
}  // namespace feedrate::ladder::split_k
