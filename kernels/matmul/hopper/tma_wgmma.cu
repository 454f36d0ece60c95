#include "kernels/matmul/hopper/hopper.cuh"

/// Warpgroup instructions read both operands from shared memory, where TMA puts them: no thread moves data.
namespace feedrate::ladder::tma_wgmma {
namespace {

constexpr int kRows = 128, kColumns = 128, kThreads = 256, kStages = 5;
constexpr int kTile = 128 * static_cast<int>(tile::kBoxRow);  // bytes

template <Element element>
__global__ void __launch_bounds__(kThreads, 1) tma_wgmma_kernel(const __grid_constant__ TmaProduct<element> product) {
  extern __shared__ __align__(1024) std::byte tiles[];  // per stage: left, right
  __shared__ tile::Barrier full[kStages];
  const int row = static_cast<int>(blockIdx.y) * kRows, column = static_cast<int>(blockIdx.x) * kColumns;
  const int which = static_cast<int>(blockIdx.z), group = static_cast<int>(threadIdx.x) / 128;
  const int steps = (product.depth + static_cast<int>(tile::kBoxRow) - 1) / static_cast<int>(tile::kBoxRow);
  if (threadIdx.x == 0) {
    for (tile::Barrier& each : full) tile::init(each, 1);
    tile::after_init();
  }
  __syncthreads();
  const auto load = [&](int step) {
    if (threadIdx.x != 0 || step >= steps) return;
    tile::Barrier& barrier = full[step % kStages];
    std::byte* const left = tiles + step % kStages * 2 * kTile;
    tile::arrive_expecting(barrier, 2 * kTile);
    tile::load_box(left, product.left, barrier, step * kBoxElements<element>, row, which);
    tile::load_box(left + kTile, product.right, barrier, step * kBoxElements<element>, column, which);
  };
  for (int step = 0; step < kStages - 1; ++step) load(step);
  TileSums<element, kColumns> sums;
  sums.restart();
  for (int step = 0; step < steps; ++step) {
    tile::wait(full[step % kStages], step / kStages % 2);
    const std::byte* const left = tiles + step % kStages * 2 * kTile;
    sums.start(left + group * kTile / 2, left + kTile);
    // The products of the step before have to end, whose stage is filled next. Sums of fp8 are added after each step.
    tile::await_products<decltype(sums)::kPromotes ? 0 : 1>();
    sums.take();
    __syncthreads();
    load(step + kStages - 1);
  }
  tile::await_products<0>();
  finish_and_store(sums, product.result, which, row + group * 64, column, product.m, product.n);
}

struct Launch {
  template <Element element>
  static auto make(const MatmulShape& shape, const MatmulData& data) {
    constexpr unsigned kShared = kStages * 2 * kTile;
    return KernelLaunch(tma_wgmma_kernel<element>, {tiles_of(shape, kRows, kColumns), kThreads, kShared}, nullptr,
                        tma_product<element>(shape, data, kRows, kColumns));
  }
};

const MatmulRegistration registered(
    "tma_wgmma",
    hopper_rung<Launch>(
        "tma_wgmma",
        {.step = 9,
         .changes = "wgmma on tiles that TMA brings; 128 x 128 tiles, five stages",
         .reason = "a warpgroup's instruction multiplies 64 x 128 x 16 elements straight from shared memory, "
                   "and one thread starts all copies",
         .prediction = "1.3 times warp_tensor; the block still waits once per step",
         .measured = "H200, matmul bf16, 8192 × 8192 × 8192, layout nt: 555 T/s, 1.89 times warp_tensor, 0.807 of the "
                     "best library",
         .design = "m=8192 n=8192 k=8192 dtype=bf16"}));

}  // namespace
}  // namespace feedrate::ladder::tma_wgmma
