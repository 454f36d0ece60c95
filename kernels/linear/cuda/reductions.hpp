#pragma once
#include "kernels/linear/linear.hpp"

namespace feedrate::ladder {

/// gradient_bias = the sums of the columns of `slope`: parts of the rows by blocks, then the parts in order.
void sum_columns_by_blocks(Stream&, const LinearShape&, const LinearData&);
/// sum (1 row) = the sums of the columns of `partial`, in fp32, in a fixed order.
void sum_partial(Stream&, const Matrix& partial, const Matrix& sum);
/// slope = gradient_y × gelu'(before_gelu) and gradient_bias = its columns' sums, reading both matrices once.
void write_slope_and_sum(Stream&, const LinearShape&, const LinearData&);

}  // namespace feedrate::ladder
