#pragma once
#include "kernels/tile/product.cuh"

namespace feedrate::tile {

/// Loads four elements from `from`. Only the first `there` of them exist; the others become 0.
__device__ inline float4 load_four(const float* from, int there, bool vectors) {
  if (vectors && there >= 4) return *reinterpret_cast<const float4*>(from);
  return {there > 0 ? from[0] : 0, there > 1 ? from[1] : 0, there > 2 ? from[2] : 0, there > 3 ? from[3] : 0};
}

/// Copies a tile of an operand, `rows` × `depth` elements from (row, k), to shared memory, where element (row, k) is at
/// k × `stride` + row: the threads of a step read one k. All of the block's `threads` threads take part. Elements
/// beyond `last_row` and `last_k` become 0.
template <int rows, int depth, int stride, int threads, bool along>
__device__ void load_tile(float* to, const Operand<float>& operand, unsigned which, int row, int k, int last_row,
                          int last_k) {
  constexpr int kOuter = along ? rows : depth, kInner = along ? depth : rows;
  constexpr int kPieces = kOuter * kInner / 4;
  static_assert(kPieces % threads == 0);
#pragma unroll
  for (int i = 0; i < kPieces / threads; ++i) {
    const int piece = i * threads + static_cast<int>(threadIdx.x);
    const int outer = piece / (kInner / 4), inner = piece % (kInner / 4) * 4;
    const int at_row = row + (along ? outer : inner), at_k = k + (along ? inner : outer);
    float4 values{};
    if ((along ? at_row < last_row : at_k < last_k)) {
      values = load_four(operand.at(which, at_row, at_k), along ? last_k - at_k : last_row - at_row, operand.vectors);
    }
    if constexpr (along) {
      to[(inner + 0) * stride + outer] = values.x;
      to[(inner + 1) * stride + outer] = values.y;
      to[(inner + 2) * stride + outer] = values.z;
      to[(inner + 3) * stride + outer] = values.w;
    } else {
      *reinterpret_cast<float4*>(to + outer * stride + inner) = values;
    }
  }
}

}  // namespace feedrate::tile
