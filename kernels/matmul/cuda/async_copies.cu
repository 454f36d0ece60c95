#include "kernels/matmul/cuda/fp32.cuh"
#include "kernels/tile/async_copy.cuh"

/// Asynchronous copies fill the next tiles while this one is multiplied.
namespace feedrate::ladder::async_copies {
namespace {

constexpr int kRows = 128, kColumns = 128, kDepth = 16, kThreads = 256, kStages = 4;
constexpr int kWarpRows = 64, kWarpColumns = 32;  // per warp; 2 × 4 warps
// Tiles lie in shared memory as they lie in memory: rows of `kDepth` elements along k, or of 128 elements across k. The
// padding spreads rows over the banks and keeps them aligned to 16 bytes.
constexpr int kAlongStride = kDepth + 4, kAcrossStride = 128 + 4;
constexpr int kTile = 128 * kAlongStride;  // floats; more than kDepth × kAcrossStride

/// Starts the copy of 128 rows × kDepth elements from (row, k); what lies beyond the last row and k becomes 0.
template <bool along>
__device__ void start_copy(float* to, const tile::Operand<float>& operand, int row, int k, int last_row, int last_k) {
  constexpr int kInner = along ? kDepth : 128, kStride = along ? kAlongStride : kAcrossStride;
#pragma unroll
  for (int i = 0; i < 128 * kDepth / 4 / kThreads; ++i) {
    const int piece = i * kThreads + static_cast<int>(threadIdx.x);
    const int outer = piece / (kInner / 4), inner = piece % (kInner / 4) * 4;
    const int at_row = row + (along ? outer : inner), at_k = k + (along ? inner : outer);
    const bool exists = along ? at_row < last_row : at_k < last_k;
    const int left = along ? last_k - at_k : last_row - at_row;
    const int there = exists && left > 0 ? (left < 4 ? left : 4) : 0;
    const float* const from = there > 0 ? operand.at(blockIdx.z, at_row, at_k) : operand.data;
    float* const place = to + outer * kStride + inner;
    if (operand.vectors) {
      tile::copy_16(place, from, there * 4);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) tile::copy_4(place + j, j < there ? from + j : from, j < there ? 4 : 0);
    }
  }
}

/// This thread's operands for four steps of k: `values[step][i]` of row `first` + `apart` × i.
template <bool along>
__device__ void read_steps(float (&values)[4][8], const float* tile, int k, int first, int apart) {
  if constexpr (along) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float4 four = *reinterpret_cast<const float4*>(tile + (first + i * apart) * kAlongStride + k);
      values[0][i] = four.x, values[1][i] = four.y, values[2][i] = four.z, values[3][i] = four.w;
    }
  } else {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
#pragma unroll
      for (int i = 0; i < 8; ++i) values[step][i] = tile[(k + step) * kAcrossStride + first + i * apart];
    }
  }
}

template <bool right_along>
__global__ void __launch_bounds__(kThreads, 1) async_copies_kernel(Fp32Product product) {
  extern __shared__ __align__(16) float tiles[];  // per stage: left, right
  const int row = static_cast<int>(blockIdx.y) * kRows, column = static_cast<int>(blockIdx.x) * kColumns;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int y = warp / 4 * kWarpRows + lane / 4, x = warp % 4 * kWarpColumns + lane % 4;
  const int steps = (product.k + kDepth - 1) / kDepth;
  const auto start = [&](int step) {
    float* const left = tiles + step % kStages * 2 * kTile;
    if (step < steps) {
      start_copy<true>(left, product.left, row, step * kDepth, product.m, product.k);
      start_copy<right_along>(left + kTile, product.right, column, step * kDepth, product.n, product.k);
    }
    tile::end_copies();  // one group per step, even if it is empty: await_copies() counts groups
  };
  for (int step = 0; step < kStages - 1; ++step) start(step);
  float sums[8][8] = {};
  for (int step = 0; step < steps; ++step) {
    tile::await_copies<kStages - 2>();
    __syncthreads();  // all threads' copies of this step have arrived, and all have left the stage that is filled next
    start(step + kStages - 1);
    const float* const left = tiles + step % kStages * 2 * kTile;
#pragma unroll
    for (int k = 0; k < kDepth; k += 4) {
      float a[4][8], b[4][8];
      read_steps<true>(a, left, k, y, 8);
      read_steps<right_along>(b, left + kTile, k, x, 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int r = 0; r < 8; ++r) {
#pragma unroll
          for (int c = 0; c < 8; ++c) sums[r][c] += a[i][r] * b[i][c];
        }
      }
    }
  }
  tile::await_copies<0>();
#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float one[1] = {sums[r][c]};
      tile::store(product.result, blockIdx.z, row + y + r * 8, column + x + c * 4, product.m, product.n, one);
    }
  }
}

KernelLaunch<Fp32Product> launch(const MatmulShape& shape, const MatmulData& data) {
  const auto kernel = right_is_transposed(shape.layout) ? async_copies_kernel<true> : async_copies_kernel<false>;
  constexpr unsigned kShared = kStages * 2 * kTile * sizeof(float);
  return {kernel, {tiles_of(shape, kRows, kColumns), kThreads, kShared}, nullptr, fp32_product(shape, data)};
}

const MatmulRegistration registered(
    "async_copies",
    fp32_rung("async_copies",
              {.step = 7,
               .changes = "cp.async fills three tiles ahead; tiles keep the layout that they have in memory",
               .reason = "no thread waits for memory, copies need no registers, and one barrier per tile suffices",
               .prediction = "1.15 times warp_tiles, 95 % of the library",
               .design = "m=8192 n=8192 k=8192 layout=nn"},
              launch, {Layout::nn, Layout::nt}));

}  // namespace
}  // namespace feedrate::ladder::async_copies
