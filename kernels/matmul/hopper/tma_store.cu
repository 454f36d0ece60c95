#include "kernels/matmul/hopper/hopper.cuh"
#include "kernels/matmul/hopper/tile_order.cuh"

/// Results go through shared memory and TMA, in whole cache lines and while the next tile is multiplied. The last rung
/// for large products, and therefore the one for all layouts.
namespace feedrate::ladder::tma_store {
namespace {

constexpr int kCluster = 2;

template <Element element>
using Out = typename ResultOf<element>::Type;

/// The results of a warpgroup in shared memory: boxes of 64 rows × 128 bytes, swizzled like operands.
template <Element element>
struct Buffer {
  static constexpr int kBox = 64 * static_cast<int>(tile::kBoxRow);
  static constexpr int kBoxColumns = static_cast<int>(tile::kBoxRow / sizeof(Out<element>));
  static constexpr int kBoxes = WarpgroupTile<element>::kColumns / kBoxColumns;
  static constexpr int kBytes = kBoxes * kBox;
};
template <Element element>
using Shape = WarpgroupTile<element, WarpgroupTile<element>::kMultipliers * Buffer<element>::kBytes>;

template <Element element>
struct StoredProduct {
  TmaProduct<element> product;
  CUtensorMap result, before;  // `before`: for values before gelu, if they are asked for
};

/// Waits for the threads of this warpgroup.
__device__ __forceinline__ void synchronize_group(int group) {
  asm volatile("bar.sync %0, 128;\n" ::"r"(1 + group) : "memory");
}

/// Writes value_of(sum, column) of all sums to the buffer, and starts the copies from there to `map`. First waits until
/// earlier copies have read the buffer.
template <Element element, class Sums, class ValueOf>
__device__ __forceinline__ void start_stores(const Sums& sums, const CUtensorMap& map, std::byte* buffer, int group,
                                             int which, int row, int column, int n, const ValueOf& value_of) {
  using Buffer = Buffer<element>;
  const bool starts = threadIdx.x % 128 == 0;
  if (starts) tile::await_reads_of_stores();
  synchronize_group(group);
#pragma unroll
  for (int i = 0; i < Sums::kCount; i += 2) {
    const int at_row = tile::row_of_sum(i), at_column = tile::column_of_sum(i);
    struct alignas(2 * sizeof(Out<element>)) Pair {
      Out<element> values[2];
    } pair{};
    if (column + at_column < n) {
      const int next = column + at_column + 1 < n ? 1 : 0;
      pair.values[0] = tile::rounded_to<Out<element>>(value_of(sums.at(i), column + at_column));
      pair.values[1] = tile::rounded_to<Out<element>>(value_of(sums.at(i + 1), column + at_column + next));
    }
    const int box = at_column / Buffer::kBoxColumns;
    const int byte = at_column % Buffer::kBoxColumns * static_cast<int>(sizeof(Out<element>));
    std::byte* const to = buffer + box * Buffer::kBox + at_row * static_cast<int>(tile::kBoxRow) +
                          ((byte / 16 ^ at_row % 8) * 16) + byte % 16;
    *reinterpret_cast<Pair*>(to) = pair;
  }
  tile::after_writes();
  synchronize_group(group);
  if (starts) {
    for (int box = 0; box < Buffer::kBoxes; ++box) {
      tile::store_box(map, buffer + box * Buffer::kBox, column + box * Buffer::kBoxColumns, row, which);
    }
    tile::end_stores();
  }
}

template <Element element, bool left_along, bool right_along>
__global__ void __launch_bounds__(Shape<element>::kThreads, 1)
    tma_store_kernel(const __grid_constant__ StoredProduct<element> stored) {
  using Shape = Shape<element>;
  constexpr int kHalf = Shape::kRight / kCluster;
  const TmaProduct<element>& product = stored.product;
  extern __shared__ __align__(1024) std::byte stages[];  // per stage: left, right; then the warpgroups' buffers
  __shared__ StageBarriers<Shape::kStages> barriers;
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
        for (int step = 0; step < steps; ++step, cursor.advance()) {
          tile::wait(barriers.empty[cursor.stage], cursor.parity ^ 1);
          tile::Barrier& full = barriers.full[cursor.stage];
          std::byte* const left = stages + cursor.stage * Shape::kStage;
          const int k = step * kBoxElements<element>;
          tile::arrive_expecting(full, Shape::kStage);
          load_operand<Shape::kRows, left_along>(left, product.left, full, place.row + rank * Shape::kRows, k,
                                                 place.which);
          load_operand<Shape::kColumns / kCluster, right_along>(left + Shape::kLeft + rank * kHalf, product.right, full,
                                                                place.column + rank * Shape::kColumns / kCluster, k,
                                                                place.which, (1 << kCluster) - 1);
        }
      }
    }
    __syncwarp();
  } else {
    tile::take_registers<Shape::kMultiplierRegisters>();
    std::byte* const buffer = stages + Shape::kStages * Shape::kStage + group * Buffer<element>::kBytes;
    TileSums<element, Shape::kColumns> sums;
    for (int number = cluster; number < order.count(); number += clusters) {
      const TileOrder::Place place = order.at(number);
      multiply_stages<Shape, left_along, right_along>(sums, stages, barriers, cursor, steps, group * Shape::kLeft / 2,
                                                      [&](int stage) {
                                                        if (threadIdx.x % 32 < kCluster)
                                                          tile::arrive_at(barriers.empty[stage], threadIdx.x % 32);
                                                      });
      const int row = place.row + rank * Shape::kRows + group * 64;
      const auto start = [&](const CUtensorMap& map, const auto& value_of) {
        start_stores<element>(sums, map, buffer, group, place.which, row, place.column, product.n, value_of);
      };
      if (product.result.before != nullptr) {
        start(stored.before, [&](float sum, int column) { return product.result.before_gelu(sum, column); });
      }
      start(stored.result, [&](float sum, int column) { return product.result.finished(sum, column); });
    }
    if (threadIdx.x % 128 == 0) tile::await_reads_of_stores();
    __syncwarp();
  }
  tile::synchronize_cluster();
}

struct Launch {
  template <Element element>
  static auto make(const MatmulShape& shape, const MatmulData& data) {
    using Shape = Shape<element>;
    const unsigned tiles = tiles_of(shape, kCluster * Shape::kRows, Shape::kColumns).size();
    auto kernel = tma_store_kernel<element, true, true>;
    if constexpr (bytes_of(element) == 2) {
      kernel =
          with_layout(shape.layout, [&]<bool left, bool right>() { return tma_store_kernel<element, left, right>; });
    }
    const unsigned clusters = std::min(tiles, clusters_that_fit(kernel, kCluster, Shape::kThreads, Shape::kShared));
    const StoredProduct<element> stored{
        tma_product<element>(shape, data, Shape::kRows, Shape::kColumns / kCluster), tile::tensor_map(data.result, 64),
        tile::tensor_map(data.before_gelu.data == nullptr ? data.result : data.before_gelu, 64)};
    return KernelLaunch(kernel, {kCluster * clusters, Shape::kThreads, Shape::kShared, kCluster}, nullptr, stored);
  }
};

const MatmulRegistration registered(
    "tma_store",
    hopper_rung<Launch>(
        "tma_store",
        {.step = 13,
         .changes = "results through shared memory and TMA",
         .reason = "a warp's registers hold pieces of 16 bytes of eight rows; TMA writes whole lines, checks "
                   "the edges, and works while the next tile is multiplied",
         .prediction = "1.02 times multicast, ahead of the library's default",
         .design = "m=8192 n=8192 k=8192 dtype=bf16"}));

}  // namespace
}  // namespace feedrate::ladder::tma_store
