#pragma once
#include "kernels/launch.cuh"
#include "kernels/linear/linear.hpp"

/// Sums of columns by many blocks, in two steps and in a fixed order.
namespace feedrate::ladder {

inline constexpr unsigned kSumColumns = 32, kSumRows = 8;  // threads of a block

/// Adds a block's columns over its part of the rows, to row `part` of `partial`. The threads of a warp have
/// neighbouring columns, `wide` each; those with the same columns add their sums in shared memory. `add(row, column,
/// sums)` adds the values of `wide` columns.
template <unsigned wide, class Add>
__device__ void sum_part(const Matrix& partial, std::uint64_t rows, const Add& add) {
  __shared__ float shared[kSumRows][kSumColumns][wide];
  const std::uint64_t column = (std::uint64_t{blockIdx.x} * kSumColumns + threadIdx.x) * wide;
  const std::uint64_t first = rows * blockIdx.y / gridDim.y, end = rows * (blockIdx.y + 1) / gridDim.y;
  float sums[wide] = {};
  if (column < partial.columns) {
#pragma unroll 4
    for (std::uint64_t row = first + threadIdx.y; row < end; row += kSumRows) add(row, column, sums);
  }
  for (unsigned i = 0; i < wide; ++i) shared[threadIdx.y][threadIdx.x][i] = sums[i];
  __syncthreads();
  if (threadIdx.y != 0 || column >= partial.columns) return;
  for (unsigned i = 0; i < wide; ++i) {
    for (unsigned row = 1; row < kSumRows; ++row) sums[i] += shared[row][threadIdx.x][i];
    reinterpret_cast<float*>(partial.at(0, blockIdx.y, column))[i] = sums[i];
  }
}

/// Blocks for `parts` parts of the rows.
inline Extent blocks_of_sums(std::uint64_t columns, unsigned wide, std::uint64_t parts) {
  const std::uint64_t at_once = std::uint64_t{kSumColumns} * wide;
  return {static_cast<unsigned>((columns + at_once - 1) / at_once), static_cast<unsigned>(parts)};
}
inline Extent threads_of_sums() { return {kSumColumns, kSumRows}; }

}  // namespace feedrate::ladder
