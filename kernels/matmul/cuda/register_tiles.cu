#include "kernels/matmul/cuda/fp32.cuh"
#include "kernels/tile/load.cuh"

/// Each thread computes 8 × 8 elements, so that every value that it reads from shared memory is used eight times.
namespace feedrate::ladder::register_tiles {
namespace {

constexpr int kRows = 128, kColumns = 128, kDepth = 8, kThreads = 256, kSide = 8;
constexpr int kStride = 128 + 4;

template <bool left_along, bool right_along>
__global__ void __launch_bounds__(kThreads) register_tiles_kernel(Fp32Product product) {
  __shared__ __align__(16) float left[kDepth * kStride], right[kDepth * kStride];
  const int row = static_cast<int>(blockIdx.y) * kRows, column = static_cast<int>(blockIdx.x) * kColumns;
  const int x = static_cast<int>(threadIdx.x) % 16 * kSide, y = static_cast<int>(threadIdx.x) / 16 * kSide;
  float sums[kSide][kSide] = {};
  for (int k = 0; k < product.k; k += kDepth) {
    tile::load_tile<kRows, kDepth, kStride, kThreads, left_along>(left, product.left, blockIdx.z, row, k, product.m,
                                                                  product.k);
    tile::load_tile<kColumns, kDepth, kStride, kThreads, right_along>(right, product.right, blockIdx.z, column, k,
                                                                      product.n, product.k);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      float a[kSide], b[kSide];
#pragma unroll
      for (int j = 0; j < kSide; ++j) a[j] = left[i * kStride + y + j], b[j] = right[i * kStride + x + j];
#pragma unroll
      for (int r = 0; r < kSide; ++r) {
#pragma unroll
        for (int c = 0; c < kSide; ++c) sums[r][c] += a[r] * b[c];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kSide; ++r) {
#pragma unroll
    for (int c = 0; c < kSide; c += 4) {
      const float four[4] = {sums[r][c], sums[r][c + 1], sums[r][c + 2], sums[r][c + 3]};
      tile::store(product.result, blockIdx.z, row + y + r, column + x + c, product.m, product.n, four);
    }
  }
}

const MatmulRegistration registered(
    "register_tiles",
    fp32_rung("register_tiles",
              {.step = 5,
               .changes = "each thread computes 8 x 8 elements in registers; tiles of 128 x 128 x 8",
               .reason = "four loads of 16 bytes from shared memory for 64 multiply-adds, so arithmetic limits; eight "
                         "independent sums hide its latency",
               .prediction = "3 times vectors, 60 to 70 % of the library",
               .measured = "H200, matmul fp32, 4096 × 4096 × 4096, layout nn: 30.4 T/s, 2.73 times vectors, 0.596 of "
                           "the best library",
               .design = "m=4096 n=4096 k=4096 layout=nn"},
              [](const MatmulShape& shape, const MatmulData& data) {
                return with_layout(shape.layout, [&]<bool left, bool right>() {
                  return KernelLaunch(register_tiles_kernel<left, right>, {tiles_of(shape, kRows, kColumns), kThreads},
                                      nullptr, fp32_product(shape, data));
                });
              }));

}  // namespace
}  // namespace feedrate::ladder::register_tiles
