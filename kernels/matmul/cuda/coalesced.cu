#include "kernels/matmul/cuda/fp32.cuh"

/// The threads of a warp compute one row, so that they load and store neighbouring elements.
namespace feedrate::ladder::coalesced {
namespace {

constexpr unsigned kRows = 8, kColumns = 32;  // per block

__global__ void coalesced_kernel(Fp32Product product) {
  const int row = static_cast<int>(blockIdx.y * kRows + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * kColumns + threadIdx.x);
  if (row >= product.m || column >= product.n) return;
  float sum = 0;
  for (int k = 0; k < product.k; ++k) {
    sum += *product.left.at(blockIdx.z, row, k) * *product.right.at(blockIdx.z, column, k);
  }
  tile::store(product.result, blockIdx.z, row, column, product.m, product.n, {sum});
}

const MatmulRegistration registered(
    "coalesced",
    fp32_rung(
        "coalesced",
        {.step = 2,
         .changes = "the threads of a warp compute one row instead of one column",
         .reason = "a warp's loads of B and its stores are one cache line each, and its loads of A are "
                   "one word",
         .prediction = "6 to 8 times naive; every multiply-add still needs two loads",
         .measured =
             "H200, matmul fp32, 4096 × 4096 × 4096, layout nn: 6.22 T/s, 12.4 times naive, 0.122 of the best library",
         .design = "m=4096 n=4096 k=4096 layout=nn"},
        [](const MatmulShape& shape, const MatmulData& data) {
          return KernelLaunch(coalesced_kernel, {tiles_of(shape, kRows, kColumns), {kColumns, kRows}}, nullptr,
                              fp32_product(shape, data));
        }));

}  // namespace
}  // namespace feedrate::ladder::coalesced
