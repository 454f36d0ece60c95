#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "kernels/ladder/gelu.hpp"
#include "kernels/ladder/matrix.hpp"

/// Matrix products as kernels receive them. What the ladders' CUDA rungs share is in this folder: loads, barriers,
/// instructions of tensor cores, epilogues.
namespace feedrate::tile {

/// One operand: element (row, k) of matrix `which` is at data + which × matrix + row × stride + k, if it lies `along`
/// k; otherwise at data + which × matrix + k × stride + row. For the right operand, "row" is the column of the result.
/// Strides are in elements. `vectors`: all rows begin at multiples of 16 bytes.
template <class T>
struct Operand {
  const T* data;
  std::int64_t stride, matrix;
  bool along, vectors;

  __device__ const T* at(unsigned which, std::int64_t row, std::int64_t k) const {
    return data + static_cast<std::int64_t>(which) * matrix + (along ? row * stride + k : k * stride + row);
  }
};

template <class T>
Operand<T> operand_of(const ladder::Matrix& matrix, bool along) {
  const bool vectors = reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride * sizeof(T) % 16 == 0;
  return {reinterpret_cast<const T*>(matrix.data), static_cast<std::int64_t>(matrix.stride),
          static_cast<std::int64_t>(matrix.rows * matrix.stride), along, vectors};
}

/// Where results go, and what happens to a sum of products before: gelu(scale × sum + bias). `before`, if it is not
/// null, receives the values before gelu, with the strides of the result.
template <class T>
struct Result {
  T* data;
  std::int64_t stride, matrix;
  const float* bias;  ///< per column; may be null
  float scale;
  bool gelu, vectors;
  T* before = nullptr;

  __device__ float before_gelu(float sum, int column) const {
    return scale * sum + (bias != nullptr ? bias[column] : 0.0f);
  }
  __device__ float finished(float sum, int column) const {
    const float value = before_gelu(sum, column);
    return gelu ? ladder::gelu(value) : value;
  }
  __device__ T* at(unsigned which, std::int64_t row, std::int64_t column) const {
    return data + static_cast<std::int64_t>(which) * matrix + row * stride + column;
  }
};

template <class T>
Result<T> result_of(const ladder::Matrix& matrix, const float* bias, float scale, bool gelu, std::byte* before) {
  const bool vectors = reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride * sizeof(T) % 16 == 0;
  return {reinterpret_cast<T*>(matrix.data),
          static_cast<std::int64_t>(matrix.stride),
          static_cast<std::int64_t>(matrix.rows * matrix.stride),
          bias,
          scale,
          gelu,
          vectors,
          reinterpret_cast<T*>(before)};
}

/// A product of m × k and k × n elements.
template <class In, class Out>
struct Product {
  Operand<In> left, right;
  Result<Out> result;
  int m, n, k;
};

template <class T>
__device__ T rounded_to(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else {
    return __float2bfloat16_rn(value);
  }
}

__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

/// Stores `count` consecutive elements of a row, as far as they exist; in one piece if possible.
template <int count, class T>
__device__ void store(const Result<T>& result, unsigned which, int row, int column, int m, int n,
                      const float (&sums)[count]) {
  if (row >= m) return;
  struct alignas(count * sizeof(T)) Piece {
    T values[count];
  };
  T* const to = result.at(which, row, column);
  T* const before = result.before == nullptr ? nullptr : result.before + (to - result.data);
  if (count > 1 && result.vectors && column + count <= n) {
    Piece piece, saved;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      piece.values[i] = rounded_to<T>(result.finished(sums[i], column + i));
      saved.values[i] = rounded_to<T>(result.before_gelu(sums[i], column + i));
    }
    *reinterpret_cast<Piece*>(to) = piece;
    if (before != nullptr) *reinterpret_cast<Piece*>(before) = saved;
    return;
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (column + i >= n) continue;
    to[i] = rounded_to<T>(result.finished(sums[i], column + i));
    if (before != nullptr) before[i] = rounded_to<T>(result.before_gelu(sums[i], column + i));
  }
}

}  // namespace feedrate::tile
