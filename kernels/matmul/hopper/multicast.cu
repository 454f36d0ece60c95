#include "kernels/matmul/hopper/hopper.cuh"
#include "kernels/matmul/hopper/tile_order.cuh"

/// Two blocks of a cluster compute tiles below each other: each loads half of the columns' operand for both.
namespace feedrate::ladder::multicast {
namespace {

constexpr int kCluster = 2;

template <Element element>
using Shape = WarpgroupTile<element>;

template <Element element>
__global__ void __launch_bounds__(Shape<element>::kThreads, 1)
    multicast_kernel(const __grid_constant__ TmaProduct<element> product) {
  using Shape = Shape<element>;
  constexpr int kHalf = Shape::kRight / kCluster;
  extern __shared__ __align__(1024) std::byte stages[];  // per stage: left, right
  __shared__ StageBarriers<Shape::kStages> barriers;
  // The tiles of a cluster are one tile of twice the rows.
  const TileOrder order(product.m, product.n, product.batch, kCluster * Shape::kRows, Shape::kColumns);
  const int group = static_cast<int>(threadIdx.x) / 128, steps = steps_of(product.depth);
  const int rank = static_cast<int>(tile::cluster_rank());
  const int cluster = static_cast<int>(blockIdx.x) / kCluster, clusters = static_cast<int>(gridDim.x) / kCluster;
  if (threadIdx.x == 0) barriers.init(kCluster * Shape::kMultipliers * 4);
  tile::synchronize_cluster();
  tile::Cursor<Shape::kStages> cursor;
  if (group == Shape::kMultipliers) {
    tile::give_registers<Shape::kLoaderRegisters>();
    if (threadIdx.x % 128 == 0) {
      for (int number = cluster; number < order.count(); number += clusters) {
        const TileOrder::Place place = order.at(number);
        // A stage is empty when both blocks have left it.
        load_stages<Shape>(stages, barriers, cursor, steps, [&](std::byte* left, tile::Barrier& full, int k) {
          tile::load_box(left, product.left, full, k, place.row + rank * Shape::kRows, place.which);
          tile::load_box_to_all(left + Shape::kLeft + rank * kHalf, product.right, full, k,
                                place.column + rank * Shape::kColumns / kCluster, place.which, (1 << kCluster) - 1);
        });
      }
    }
    __syncwarp();
  } else {
    tile::take_registers<Shape::kMultiplierRegisters>();
    TileSums<element, Shape::kColumns> sums;
    for (int number = cluster; number < order.count(); number += clusters) {
      const TileOrder::Place place = order.at(number);
      multiply_stages<Shape>(sums, stages, barriers, cursor, steps, group * Shape::kLeft / 2, [&](int stage) {
        if (threadIdx.x % 32 < kCluster) tile::arrive_after_reads(barriers.empty[stage], threadIdx.x % 32);
      });
      finish_and_store(sums, product.result, place.which, place.row + rank * Shape::kRows + group * 64, place.column,
                       product.m, product.n);
    }
  }
  tile::synchronize_cluster();  // a block must not end while another one writes to its shared memory
}

struct Launch {
  template <Element element>
  static auto make(const MatmulShape& shape, const MatmulData& data) {
    using Shape = Shape<element>;
    const unsigned tiles = tiles_of(shape, kCluster * Shape::kRows, Shape::kColumns).size();
    const auto kernel = multicast_kernel<element>;
    const unsigned clusters = std::min(tiles, clusters_that_fit(kernel, kCluster, Shape::kThreads, Shape::kShared));
    return KernelLaunch(kernel, {kCluster * clusters, Shape::kThreads, Shape::kShared, kCluster}, nullptr,
                        tma_product<element>(shape, data, Shape::kRows, Shape::kColumns / kCluster));
  }
};

const MatmulRegistration registered(
    "multicast",
    hopper_rung<Launch>(
        "multicast",
        {.step = 12,
         .changes = "clusters of two blocks, which share the columns' operand by multicast",
         .reason = "a third fewer bytes leave the L2 cache per product; the gain is small, and tma_store builds on it",
         .prediction = "1.05 times persistent",
         .measured = "H200, matmul bf16, 8192 × 8192 × 8192, layout nt: 661 T/s, 1.01 times persistent, 0.946 of the "
                     "best library",
         .design = "m=8192 n=8192 k=8192 dtype=bf16"}));

}  // namespace
}  // namespace feedrate::ladder::multicast
