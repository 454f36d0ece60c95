#pragma once
#include "kernels/linear/linear.hpp"

/// Steps of a linear layer that are no matrix products. Each is queued on a stream; all matrices are rows × out.
namespace feedrate::ladder {

/// y = gelu(before_gelu + bias), which also replaces before_gelu by its sum with the bias. One element per thread.
void add_bias_and_gelu(Stream&, const LinearShape&, const LinearData&);
/// slope = gradient_y × gelu'(before_gelu), or gradient_y without gelu.
void write_slope(Stream&, const LinearShape&, const LinearData&);
/// gradient_bias = the sums of the columns of `slope`, from atomic additions of single elements, in any order.
void sum_columns_by_atomics(Stream&, const LinearShape&, const LinearData&);
/// The same, with a thread per column that adds its rows in order.
void sum_columns_by_threads(Stream&, const LinearShape&, const LinearData&);

/// sum = the sum of the matrices of the batch `parts`, added in order.
void add_parts(Stream&, const Matrix& parts, const Matrix& sum);

}  // namespace feedrate::ladder
