#include "kernels/matmul/cpu/cpu_products.hpp"

/// The definition of a product: one sum after another, on one core.
namespace feedrate::ladder::cpu_naive {
namespace {

void multiply(const tile::CpuProduct& product) {
  for (std::ptrdiff_t row = 0; row < product.m; ++row) {
    for (std::ptrdiff_t column = 0; column < product.n; ++column) {
      float sum = 0;
      for (std::ptrdiff_t k = 0; k < product.k; ++k) sum += product.left(row, k) * product.right(k, column);
      product.finish(row, column, sum);
    }
  }
}

const MatmulRegistration registered(
    "cpu_naive",
    cpu_rung({.step = 1,
              .one_core = true,
              .changes = "three loops, as in the definition",
              .reason = "the baseline",
              .prediction = "one multiply-add at a time, each waiting for the one before: 4 cycles each",
              .measured = "Xeon, matmul fp32, 512 × 512 × 512, layout nt: 3.64 G/s, 0.0329 of the best library",
              .design = "m=512 n=512 k=512"},
             multiply));

}  // namespace
}  // namespace feedrate::ladder::cpu_naive
