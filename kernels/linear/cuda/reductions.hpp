#pragma once
#include "kernels/linear/linear.hpp"

namespace feedrate::ladder {

/// gradient_bias = the sums of the columns of `slope`: parts of the rows by blocks, then the parts in order.
void sum_columns_by_blocks(Stream&, const LinearShape&, const LinearData&);
/// slope = gradient_y × gelu'(before_gelu) and gradient_bias = its columns' sums, reading both matrices once.
void write_slope_and_sum(Stream&, const LinearShape&, const LinearData&);

}  // namespace feedrate::ladder
