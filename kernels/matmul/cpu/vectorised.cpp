#include <algorithm>
#include <vector>

#include "kernels/matmul/cpu/cpu_products.hpp"
#include "kernels/tile/cpu/simd.hpp"

/// The same blocks with the widest vector instructions of this CPU.
namespace feedrate::ladder::cpu_vectorised {
namespace {

constexpr std::ptrdiff_t kDepth = 64, kColumns = 64;  // 16 KiB of b

/// sums[row] += left[row] × block, for one row: `kColumns` sums.
template <unsigned lanes>
[[gnu::always_inline]] inline void add_row(const tile::CpuProduct& product, std::ptrdiff_t row, std::ptrdiff_t first,
                                           std::ptrdiff_t depth, const float* block, float* sums) {
  using Vector = typename tile::Floats<lanes>::Type;
  constexpr int kVectors = kColumns / lanes < 8 ? kColumns / lanes : 8;  // sums in registers
  for (std::ptrdiff_t column = 0; column < kColumns; column += kVectors * lanes) {
    Vector kept[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) kept[i] = *reinterpret_cast<const Vector*>(sums + column + i * lanes);
    for (std::ptrdiff_t k = 0; k < depth; ++k) {
      const float left = product.left(row, first + k);
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        kept[i] += left * *reinterpret_cast<const Vector*>(block + k * kColumns + column + i * lanes);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) *reinterpret_cast<Vector*>(sums + column + i * lanes) = kept[i];
  }
}

using AddRow = void (*)(const tile::CpuProduct&, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t, const float*, float*);
FEEDRATE_AVX512 void add_row_avx512(const tile::CpuProduct& product, std::ptrdiff_t row, std::ptrdiff_t first,
                                    std::ptrdiff_t depth, const float* block, float* sums) {
  add_row<16>(product, row, first, depth, block, sums);
}
FEEDRATE_AVX2 void add_row_avx2(const tile::CpuProduct& product, std::ptrdiff_t row, std::ptrdiff_t first,
                                std::ptrdiff_t depth, const float* block, float* sums) {
  add_row<8>(product, row, first, depth, block, sums);
}
void add_row_plain(const tile::CpuProduct& product, std::ptrdiff_t row, std::ptrdiff_t first, std::ptrdiff_t depth,
                   const float* block, float* sums) {
  add_row<4>(product, row, first, depth, block, sums);
}

void multiply(const tile::CpuProduct& product) {
  const tile::Simd simd = tile::simd_here();
  const AddRow add = simd == tile::Simd::avx512 ? add_row_avx512
                     : simd == tile::Simd::avx2 ? add_row_avx2
                                                : add_row_plain;
  std::vector<float> block(kDepth * kColumns), sums(static_cast<std::size_t>(product.m * kColumns));
  for (std::ptrdiff_t column = 0; column < product.n; column += kColumns) {
    const std::ptrdiff_t columns = std::min(kColumns, product.n - column);
    std::ranges::fill(sums, 0.0f);
    std::ranges::fill(block, 0.0f);  // columns beyond the last one
    for (std::ptrdiff_t first = 0; first < product.k; first += kDepth) {
      const std::ptrdiff_t depth = std::min(kDepth, product.k - first);
      for (std::ptrdiff_t c = 0; c < columns; ++c) {
        for (std::ptrdiff_t k = 0; k < depth; ++k) block[k * kColumns + c] = product.right(first + k, column + c);
      }
      for (std::ptrdiff_t row = 0; row < product.m; ++row) {
        add(product, row, first, depth, block.data(), sums.data() + row * kColumns);
      }
    }
    for (std::ptrdiff_t row = 0; row < product.m; ++row) {
      for (std::ptrdiff_t c = 0; c < columns; ++c) product.finish(row, column + c, sums[row * kColumns + c]);
    }
  }
}

const MatmulRegistration registered(
    "cpu_vectorised",
    cpu_rung({.step = 3,
              .one_core = true,
              .changes = "the widest vectors of this CPU (AVX-512, AVX2), with the sums of a row in registers",
              .reason = "16 multiply-adds per instruction instead of 4, and no store per step",
              .prediction = "3 to 4 times blocked; one load per multiply-add leaves half of the peak",
              .measured = "Xeon, matmul fp32, 1024 × 1024 × 1024, layout nt: 50.4 G/s, 3.06 times cpu_blocked, 0.376 "
                          "of the best library",
              .design = "m=1024 n=1024 k=1024"},
             multiply));

}  // namespace
}  // namespace feedrate::ladder::cpu_vectorised
