#include "kernels/matmul/hopper/hopper.cuh"
#include "kernels/matmul/hopper/tile_order.cuh"

/// One block per SM computes many tiles: it loads the next tile while it stores the last one, in an order that keeps
/// the operands in the L2 cache.
namespace feedrate::ladder::persistent {
namespace {

template <Element element>
using Shape = WarpgroupTile<element>;

template <Element element>
__global__ void __launch_bounds__(Shape<element>::kThreads, 1)
    persistent_kernel(const __grid_constant__ TmaProduct<element> product) {
  using Shape = Shape<element>;
  extern __shared__ __align__(1024) std::byte stages[];  // per stage: left, right
  __shared__ StageBarriers<Shape::kStages> barriers;
  const TileOrder order(product.m, product.n, product.batch, Shape::kRows, Shape::kColumns);
  const int group = static_cast<int>(threadIdx.x) / 128, steps = steps_of(product.depth);
  if (threadIdx.x == 0) barriers.init(Shape::kMultipliers * 4);
  __syncthreads();
  tile::Cursor<Shape::kStages> cursor;
  if (group == Shape::kMultipliers) {
    tile::give_registers<Shape::kLoaderRegisters>();
    if (threadIdx.x % 128 != 0) return;
    for (int number = static_cast<int>(blockIdx.x); number < order.count(); number += static_cast<int>(gridDim.x)) {
      const TileOrder::Place place = order.at(number);
      load_stages<Shape>(stages, barriers, cursor, steps, [&](std::byte* left, tile::Barrier& full, int k) {
        tile::load_box(left, product.left, full, k, place.row, place.which);
        tile::load_box(left + Shape::kLeft, product.right, full, k, place.column, place.which);
      });
    }
    return;
  }
  tile::take_registers<Shape::kMultiplierRegisters>();
  TileSums<element, Shape::kColumns> sums;
  for (int number = static_cast<int>(blockIdx.x); number < order.count(); number += static_cast<int>(gridDim.x)) {
    const TileOrder::Place place = order.at(number);
    multiply_stages<Shape>(sums, stages, barriers, cursor, steps, group * Shape::kLeft / 2, [&](int stage) {
      if (threadIdx.x % 32 == 0) tile::arrive(barriers.empty[stage]);
    });
    finish_and_store(sums, product.result, place.which, place.row + group * 64, place.column, product.m, product.n);
  }
}

struct Launch {
  template <Element element>
  static auto make(const MatmulShape& shape, const MatmulData& data) {
    using Shape = Shape<element>;
    const unsigned tiles = tiles_of(shape, Shape::kRows, Shape::kColumns).size();
    return KernelLaunch(persistent_kernel<element>, {std::min(tiles, processors()), Shape::kThreads, Shape::kShared},
                        nullptr, tma_product<element>(shape, data, Shape::kRows, Shape::kColumns));
  }
};

const MatmulRegistration registered(
    "persistent",
    hopper_rung<Launch>(
        "persistent", {.step = 11,
                       .changes = "one block per SM computes tiles one after another, in groups of eight rows of tiles",
                       .reason = "the loads of the next tile run while results are stored, no block has to start, and "
                                 "blocks that run at the same time share operands in the L2 cache",
                       .prediction = "1.08 times warp_specialised",
                       .measured = "H200, matmul bf16, 8192 × 8192 × 8192, layout nt: 654 T/s, 1.02 times "
                                   "warp_specialised, 0.946 of the best library",
                       .design = "m=8192 n=8192 k=8192 dtype=bf16"}));

}  // namespace
}  // namespace feedrate::ladder::persistent
