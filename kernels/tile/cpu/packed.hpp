#pragma once
#include <algorithm>
#include <vector>

#include "kernels/tile/cpu/product.hpp"
#include "kernels/tile/cpu/simd.hpp"

/// Products from packed panels and a micro-kernel that keeps its sums in registers (Goto and van de Geijn 2008,
/// "Anatomy of high-performance matrix multiplication"; Van Zee and van de Geijn 2015, "BLIS").
namespace feedrate::tile {

/// Sizes of the micro-kernel's block of c, and of the blocks that stay in the caches.
struct PackedSizes {
  std::ptrdiff_t rows, columns;  ///< of the micro-kernel
  std::ptrdiff_t depth;          ///< k of a block; a panel of b stays in the L1 cache
  std::ptrdiff_t block_rows;     ///< block of a: stays in the L2 cache; a multiple of `rows`
  std::ptrdiff_t block_columns;  ///< block of b: stays in the L3 cache; a multiple of `columns`
};
inline constexpr PackedSizes kPackedAvx512{14, 32, 384, 14 * 24, 32 * 96};
inline constexpr PackedSizes kPackedAvx2{6, 16, 256, 6 * 32, 16 * 192};
inline constexpr PackedSizes kPackedPlain{4, 8, 256, 4 * 32, 8 * 128};
inline const PackedSizes& packed_sizes(Simd simd) {
  return simd == Simd::avx512 ? kPackedAvx512 : simd == Simd::avx2 ? kPackedAvx2 : kPackedPlain;
}

/// Panels of `wide` rows of a (or columns of b), each `depth` long; missing rows are zero. `stride` leads from one row
/// to the next, `along` from one k to the next.
inline void pack(float* to, const float* from, std::ptrdiff_t count, std::ptrdiff_t depth, std::ptrdiff_t wide,
                 std::ptrdiff_t stride, std::ptrdiff_t along) {
  for (std::ptrdiff_t first = 0; first < count; first += wide, to += wide * depth) {
    const std::ptrdiff_t there = std::min(wide, count - first);
    const float* const panel = from + first * stride;
    if (stride == 1) {
      for (std::ptrdiff_t k = 0; k < depth; ++k) {
        std::copy_n(panel + k * along, there, to + k * wide);
        std::fill_n(to + k * wide + there, wide - there, 0.0f);
      }
      continue;
    }
    constexpr std::ptrdiff_t kStrip = 16;  // a cache line of each row
    for (std::ptrdiff_t begin = 0; begin < depth; begin += kStrip) {
      const std::ptrdiff_t end = std::min(depth, begin + kStrip);
      for (std::ptrdiff_t row = 0; row < there; ++row) {
        for (std::ptrdiff_t k = begin; k < end; ++k) to[k * wide + row] = panel[row * stride + k * along];
      }
      for (std::ptrdiff_t row = there; row < wide; ++row) {
        for (std::ptrdiff_t k = begin; k < end; ++k) to[k * wide + row] = 0;
      }
    }
  }
}

/// sums += panel of a × panel of b, for `rows` × (`vectors` × `lanes`) sums, which lie in rows.
template <unsigned lanes, int rows, int vectors>
[[gnu::always_inline]] inline void micro_kernel(std::ptrdiff_t depth, const float* a, const float* b, float* sums) {
  using Vector = typename Floats<lanes>::Type;
  Vector kept[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) kept[i][j] = Vector{};
  }
  for (std::ptrdiff_t k = 0; k < depth; ++k) {
    Vector right[vectors];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) right[j] = *reinterpret_cast<const Vector*>(b + (k * vectors + j) * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const float left = a[k * rows + i];
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) kept[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) *reinterpret_cast<Vector*>(sums + (i * vectors + j) * lanes) = kept[i][j];
  }
}

using MicroKernel = void (*)(std::ptrdiff_t depth, const float* a, const float* b, float* sums);
FEEDRATE_AVX512 inline void micro_kernel_avx512(std::ptrdiff_t depth, const float* a, const float* b, float* sums) {
  micro_kernel<16, kPackedAvx512.rows, kPackedAvx512.columns / 16>(depth, a, b, sums);
}
FEEDRATE_AVX2 inline void micro_kernel_avx2(std::ptrdiff_t depth, const float* a, const float* b, float* sums) {
  micro_kernel<8, kPackedAvx2.rows, kPackedAvx2.columns / 8>(depth, a, b, sums);
}
inline void micro_kernel_plain(std::ptrdiff_t depth, const float* a, const float* b, float* sums) {
  micro_kernel<4, kPackedPlain.rows, kPackedPlain.columns / 4>(depth, a, b, sums);
}
inline MicroKernel micro_kernel_of(Simd simd) {
  return simd == Simd::avx512 ? micro_kernel_avx512 : simd == Simd::avx2 ? micro_kernel_avx2 : micro_kernel_plain;
}

/// One block of c: packed rows of a times packed columns of b. Adds to c unless `first`; finishes c if `last`.
inline void multiply_block(const CpuProduct& product, const PackedSizes& sizes, MicroKernel kernel, const float* a,
                           const float* b, std::ptrdiff_t row, std::ptrdiff_t rows, std::ptrdiff_t column,
                           std::ptrdiff_t columns, std::ptrdiff_t depth, bool first, bool last) {
  constexpr std::ptrdiff_t kMost = 14 * 32;
  alignas(64) float sums[kMost];
  for (std::ptrdiff_t j = 0; j < columns; j += sizes.columns) {
    for (std::ptrdiff_t i = 0; i < rows; i += sizes.rows) {
      kernel(depth, a + i * depth, b + j * depth, sums);
      for (std::ptrdiff_t r = 0; r < std::min(sizes.rows, rows - i); ++r) {
        float* const to = product.c + (row + i + r) * product.c_row + column + j;
        const float* const from = sums + r * sizes.columns;
        const std::ptrdiff_t there = std::min(sizes.columns, columns - j);
        if (last) {
          for (std::ptrdiff_t c = 0; c < there; ++c) {
            product.finish(row + i + r, column + j + c, first ? from[c] : to[c] + from[c]);
          }
        } else if (first) {
          std::copy_n(from, there, to);
        } else {
          for (std::ptrdiff_t c = 0; c < there; ++c) to[c] += from[c];
        }
      }
    }
  }
}

/// The work of one of `threads` threads of a product. `share(count, body)` calls body(i) for this thread's part of 0 to
/// count - 1 and then waits for all threads; with one thread it is a loop. `right` is shared by the threads, `left` is
/// this thread's.
template <class Share>
void multiply_packed(const CpuProduct& product, Simd simd, unsigned threads, std::vector<float>& right,
                     std::vector<float>& left, const Share& share) {
  PackedSizes sizes = packed_sizes(simd);
  // At least three blocks per thread, so that no thread waits long for the others.
  const std::ptrdiff_t even = (product.m / (3 * static_cast<std::ptrdiff_t>(threads)) / sizes.rows + 1) * sizes.rows;
  if (threads > 1) sizes.block_rows = std::min(sizes.block_rows, even);
  const MicroKernel kernel = micro_kernel_of(simd);
  // A product without k has sums of 0: one block of depth 0.
  for (std::ptrdiff_t column = 0; column < product.n; column += sizes.block_columns) {
    const std::ptrdiff_t columns = std::min(sizes.block_columns, product.n - column);
    const std::ptrdiff_t panels = (columns + sizes.columns - 1) / sizes.columns;
    for (std::ptrdiff_t k = 0; k == 0 || k < product.k; k += sizes.depth) {
      const std::ptrdiff_t depth = std::min(sizes.depth, product.k - k);
      share(panels, [&](std::ptrdiff_t panel) {
        const std::ptrdiff_t at = panel * sizes.columns;
        pack(right.data() + at * depth, product.b + (column + at) * product.b_column + k * product.b_k,
             std::min(sizes.columns, columns - at), depth, sizes.columns, product.b_column, product.b_k);
      });
      share((product.m + sizes.block_rows - 1) / sizes.block_rows, [&](std::ptrdiff_t block) {
        const std::ptrdiff_t row = block * sizes.block_rows, rows = std::min(sizes.block_rows, product.m - row);
        pack(left.data(), product.a + row * product.a_row + k * product.a_k, rows, depth, sizes.rows, product.a_row,
             product.a_k);
        multiply_block(product, sizes, kernel, left.data(), right.data(), row, rows, column, columns, depth, k == 0,
                       k + depth >= product.k);
      });
    }
  }
}
/// This thread's memory for packed panels. It is kept between products: fresh pages would take longer than packing.
inline std::vector<float>& right_panels(Simd simd) {
  const PackedSizes& sizes = packed_sizes(simd);
  thread_local std::vector<float> panels(static_cast<std::size_t>(sizes.depth * sizes.block_columns));
  return panels;
}
inline std::vector<float>& left_panels(Simd simd) {
  const PackedSizes& sizes = packed_sizes(simd);
  thread_local std::vector<float> panels(static_cast<std::size_t>(sizes.depth * sizes.block_rows));
  return panels;
}

}  // namespace feedrate::tile
