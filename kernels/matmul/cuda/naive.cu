#include "kernels/matmul/cuda/fp32.cuh"

/// One thread per element of the result; neighbouring threads compute neighbouring rows.
namespace feedrate::ladder::naive {
namespace {

constexpr unsigned kRows = 32, kColumns = 8;  // per block

__global__ void naive_kernel(Fp32Product product) {
  const int row = static_cast<int>(blockIdx.y * kRows + threadIdx.x);
  const int column = static_cast<int>(blockIdx.x * kColumns + threadIdx.y);
  if (row >= product.m || column >= product.n) return;
  float sum = 0;
  for (int k = 0; k < product.k; ++k) {
    sum += *product.left.at(blockIdx.z, row, k) * *product.right.at(blockIdx.z, column, k);
  }
  tile::store(product.result, blockIdx.z, row, column, product.m, product.n, {sum});
}

const MatmulRegistration registered(
    "naive",
    fp32_rung("naive",
              {.step = 1,
               .changes = "one thread per element; the threads of a warp compute one column",
               .reason = "the baseline",
               .prediction = "1 to 2 % of the library: each load of a warp touches 32 cache lines",
               .measured = "H200, matmul fp32, 4096 × 4096 × 4096, layout nn: 499 G/s, 0.00978 of the best library",
               .design = "m=4096 n=4096 k=4096 layout=nn"},
              [](const MatmulShape& shape, const MatmulData& data) {
                return KernelLaunch(naive_kernel, {tiles_of(shape, kRows, kColumns), {kRows, kColumns}}, nullptr,
                                    fp32_product(shape, data));
              }));

}  // namespace
}  // namespace feedrate::ladder::naive
