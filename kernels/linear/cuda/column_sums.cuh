#pragma once
#include "kernels/launch.cuh"
#include "kernels/linear/linear.hpp"

/// Sums of columns by many blocks, in two steps and in a fixed order.
namespace feedrate::ladder {

inline constexpr unsigned kSumColumns = 32, kSumRows = 8;  // threads of a block

/// Adds a block's columns over its part of the rows: value_of(row, column), to row `part` of `partial`. The threads of
/// a warp have neighbouring columns; those with the same column add their sums in shared memory.
template <class ValueOf>
__device__ void sum_part(const Matrix& partial, std::uint64_t rows, const ValueOf& value_of) {
  __shared__ float sums[kSumRows][kSumColumns];
  const std::uint64_t column = std::uint64_t{blockIdx.x} * kSumColumns + threadIdx.x;
  const std::uint64_t first = rows * blockIdx.y / gridDim.y, end = rows * (blockIdx.y + 1) / gridDim.y;
  float sum = 0;
  if (column < partial.columns) {
    for (std::uint64_t row = first + threadIdx.y; row < end; row += kSumRows) sum += value_of(row, column);
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= partial.columns) return;
  for (unsigned i = 1; i < kSumRows; ++i) sum += sums[i][threadIdx.x];
  *reinterpret_cast<float*>(partial.at(0, blockIdx.y, column)) = sum;
}

inline Extent blocks_of_sums(const LinearShape& shape) {
  return {static_cast<unsigned>((shape.out + kSumColumns - 1) / kSumColumns),
          static_cast<unsigned>(LinearShape::kParts)};
}
inline Extent threads_of_sums() { return {kSumColumns, kSumRows}; }

}  // namespace feedrate::ladder
