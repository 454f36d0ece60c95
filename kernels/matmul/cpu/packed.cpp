#include "kernels/tile/cpu/packed.hpp"
#include "kernels/matmul/cpu/cpu_products.hpp"

/// Both matrices in packed panels, and a micro-kernel that reads one element for many multiply-adds
/// (tile/cpu/packed.hpp).
namespace feedrate::ladder::cpu_packed {
namespace {

void multiply(const tile::CpuProduct& product) {
  const tile::Simd simd = tile::simd_here();
  tile::multiply_packed(product, simd, 1, tile::right_panels(simd), tile::left_panels(simd),
                        [](std::ptrdiff_t count, const auto& body) {
                          for (std::ptrdiff_t i = 0; i < count; ++i) body(i);
                        });
}

const MatmulRegistration registered(
    "cpu_packed",
    cpu_rung({.step = 4,
              .one_core = true,
              .changes = "panels of a and b for a micro-kernel of 14 x 32 sums (AVX-512) or 6 x 16 (AVX2)",
              .reason = "all sums stay in registers for 384 steps, and each step needs 2 vector loads for 28 "
                        "multiply-adds, so the arithmetic limits",
              .prediction = "80 to 90 % of one core's peak, twice vectorised",
              .measured = "Xeon, matmul fp32, 1024 × 1024 × 1024, layout nt: 124 G/s, 2.46 times cpu_vectorised, 0.800 "
                          "of the best library",
              .design = "m=2048 n=2048 k=2048"},
             multiply));

}  // namespace
}  // namespace feedrate::ladder::cpu_packed
