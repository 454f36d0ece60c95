#pragma once
#include "kernels/matmul/matmul.hpp"
#include "kernels/tile/cpu/product.hpp"

namespace feedrate::ladder {

/// Calls `multiply` for each product of the batch.
void for_each_product(const MatmulShape&, const MatmulData&,
                      const std::function<void(const tile::CpuProduct&)>& multiply);

/// Reason why the CPU's rungs do not compute this product; empty if they do.
std::string why_no_cpu_product(const MatmulShape&);

/// A rung of the CPU, whose products are computed by `multiply`.
MatmulRung cpu_rung(RungText, std::function<void(const tile::CpuProduct&)> multiply);

}  // namespace feedrate::ladder
