#include "kernels/matmul/hopper/hopper.cuh"
#include "kernels/matmul/hopper/tile_order.cuh"

/// Results go through shared memory and TMA, in whole cache lines and while the next tile is multiplied. The last rung
/// for large products, and therefore the one for all layouts.
namespace feedrate::ladder::tma_store {
namespace {

constexpr int kCluster = 2;

template <Element element>
using Out = typename ResultOf<element>::Type;

/// Results in shared memory: boxes of 16 rows × 128 bytes, swizzled like operands. Each warp has two of its own.
constexpr int kBoxRows = 16, kBox = kBoxRows * static_cast<int>(tile::kBoxRow), kOwnBoxes = 2, kWarps = 8;

/// If the last stage of a tile is held, each warp's third box is its rows of the left operand there.
template <Element element>
inline constexpr bool kHolds = !TileSums<element, 256>::kPromotes;

/// The boxes of a warp, filled in turn. All its stores are started by its first lane.
template <bool staged>
struct Boxes {
  static constexpr int kCount = kOwnBoxes + (staged ? 1 : 0);
  std::byte *own, *third = nullptr;
  int filled = 0;  ///< since all have been read

  /// The next box, when the store from it has read it.
  __device__ __forceinline__ std::byte* next(bool starts) {
    if (filled >= kCount) {
      if (starts) tile::await_reads_of_stores<kCount - 1>();
      __syncwarp();
    }
    const int box = filled++ % kCount;
    return box == kOwnBoxes ? third : own + box * kBox;
  }
  __device__ __forceinline__ void await_reads(bool starts) {
    if (filled == 0) return;
    if (starts) tile::await_reads_of_stores<0>();
    __syncwarp();
    filled = 0;
  }
};

template <Element element, int columns>
using Shape = WarpgroupTile<element, kWarps * kOwnBoxes * kBox, columns>;

template <Element element>
struct StoredProduct {
  TmaProduct<element> product;
  CUtensorMap result, before;  // `before`: for values before gelu, if they are asked for
};

/// Writes this warp's sums of eight columns, 16 rows, and of the next eight for 16-bit results, from `block` × 8 on.
template <class Out>
__device__ __forceinline__ void fill_box(std::byte* box, int block, const float* values) {
  constexpr int kRow = static_cast<int>(tile::kBoxRow), kPiece = 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (sizeof(Out) == 2) {
    std::uint32_t four[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Out pair[2] = {tile::rounded_to<Out>(values[2 * i]), tile::rounded_to<Out>(values[2 * i + 1])};
      memcpy(&four[i], pair, sizeof(four[i]));
    }
    tile::store_matrices(box + lane % 16 * kRow + ((block + lane / 16) ^ lane % 8) * kPiece, four);
  } else {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int piece = block * 2 + lane % 4 / 2, row = lane / 4;
      *reinterpret_cast<float2*>(box + (row + half * 8) * kRow + (piece ^ row) * kPiece + lane % 2 * 8) =
          make_float2(values[2 * half], values[2 * half + 1]);
    }
  }
}

/// Copies this warp's values to `map` through its boxes.
template <class Out, int count, bool staged>
__device__ __forceinline__ void start_stores(const float (&values)[count], const CUtensorMap& map, Boxes<staged>& boxes,
                                             int which, int row, int column) {
  constexpr int kColumns = static_cast<int>(tile::kBoxRow / sizeof(Out)), kAtOnce = sizeof(Out) == 2 ? 2 : 1;
  const bool starts = threadIdx.x % 32 == 0;
#pragma unroll
  for (int first = 0; first < count * 2; first += kColumns) {
    std::byte* const box = boxes.next(starts);
#pragma unroll
    for (int block = 0; block < kColumns / 8; block += kAtOnce)
      fill_box<Out>(box, block, values + first / 2 + block * 4);
    tile::after_writes();
    __syncwarp();
    if (starts) {
      tile::store_box(map, box, column + first, row, which);
      tile::end_stores();
    }
  }
}

template <Element element, int columns, bool left_along, bool right_along>
__global__ void __launch_bounds__(Shape<element, columns>::kThreads, 1)
    tma_store_kernel(const __grid_constant__ StoredProduct<element> stored) {
  using Shape = Shape<element, columns>;
  constexpr int kHalf = Shape::kRight / kCluster;
  const TmaProduct<element>& product = stored.product;
  extern __shared__ __align__(1024) std::byte stages[];  // per stage: left, right; then the warps' boxes
  __shared__ StageBarriers<Shape::kStages> barriers;
  const TileOrder order(product.m, product.n, product.batch, kCluster * Shape::kRows, Shape::kColumns);
  const int group = static_cast<int>(threadIdx.x) / 128, steps = steps_of(product.depth);
  const int rank = static_cast<int>(tile::cluster_rank());
  const int cluster = static_cast<int>(blockIdx.x) / kCluster, clusters = static_cast<int>(gridDim.x) / kCluster;
  cudaTriggerProgrammaticLaunchCompletion();  // the next kernel may be launched early
  if (threadIdx.x == 0) barriers.init(kCluster * Shape::kMultipliers * 4);
  if (threadIdx.x == Shape::kMultipliers * 128) {
    tile::prefetch(product.left);
    tile::prefetch(product.right);
  }
  tile::synchronize_cluster();
  cudaGridDependencySynchronize();
  tile::Cursor<Shape::kStages> cursor;
  if (group == Shape::kMultipliers) {
    tile::give_registers<Shape::kLoaderRegisters>();
    if (threadIdx.x % 128 == 0) {
      for (int number = cluster; number < order.count(); number += clusters) {
        const TileOrder::Place place = order.at(number);
        load_stages<Shape>(stages, barriers, cursor, steps, [&](std::byte* left, tile::Barrier& full, int k) {
          load_operand<Shape::kRows, left_along>(left, product.left, full, place.row + rank * Shape::kRows, k,
                                                 place.which);
          load_operand<Shape::kColumns / kCluster, right_along>(left + Shape::kLeft + rank * kHalf, product.right, full,
                                                                place.column + rank * Shape::kColumns / kCluster, k,
                                                                place.which, (1 << kCluster) - 1);
        });
      }
    }
    __syncwarp();
  } else {
    tile::take_registers<Shape::kMultiplierRegisters>();
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const bool starts = threadIdx.x % 32 == 0;
    Boxes<kHolds<element>> boxes{stages + Shape::kStages * Shape::kStage + warp * kOwnBoxes * kBox};
    TileSums<element, Shape::kColumns> sums;
    int held = -1;
    const auto leave = [&](int stage) {
      if constexpr (kHolds<element>) boxes.await_reads(starts);  // stores of the tile before, if they read this stage
      if (threadIdx.x % 32 < kCluster) tile::arrive_after_reads(barriers.empty[stage], threadIdx.x % 32);
    };
    for (int number = cluster; number < order.count(); number += clusters) {
      const TileOrder::Place place = order.at(number);
      const int rows = group * Shape::kLeft / 2;
      if constexpr (kHolds<element>) {
        multiply_stages_and_hold<Shape, left_along, right_along>(sums, stages, barriers, cursor, steps, rows, held,
                                                                 leave);
        boxes.third = stages + (held < 0 ? 0 : held) * Shape::kStage + warp * kBox;
        tile::synchronize_warpgroup(1 + group);  // all its warps have read their rows of the left operand
      } else {
        multiply_stages<Shape, left_along, right_along>(sums, stages, barriers, cursor, steps, rows, leave);
      }
      boxes.await_reads(starts);  // if the tile had no stages
      const int row = place.row + rank * Shape::kRows + warp * kBoxRows;
      sums.finish(product.result, place.column, product.n, [&](const auto& values, const Out<element>* matrix) {
        const CUtensorMap& map = matrix == product.result.data ? stored.result : stored.before;
        start_stores<Out<element>>(values, map, boxes, place.which, row, place.column);
      });
    }
    boxes.await_reads(starts);
  }
  tile::synchronize_cluster();
}

struct Launch {
  /// Wider tiles move fewer bytes through shared memory per product, but may leave SMs idle in the last round. A tile's
  /// time was measured as proportional to columns + 24.
  template <Element element>
  static auto make(const MatmulShape& shape, const MatmulData& data) {
    constexpr unsigned kNarrow = 128, kWide = element == Element::fp8 ? 192 : 256;
    const auto cost = [&](unsigned columns) {
      const unsigned tiles = tiles_of(shape, kCluster * 128, columns).size(), at_once = processors() / kCluster;
      return (tiles + at_once - 1) / at_once * (columns + 24);
    };
    // Other layouts have only the wide tiles, which saves half of the code.
    const bool wide = shape.layout != Layout::nt || cost(kWide) < cost(kNarrow);
    return wide ? with_columns<element, kWide>(shape, data) : with_columns<element, kNarrow>(shape, data);
  }

 private:
  template <Element element, int columns>
  static auto with_columns(const MatmulShape& shape, const MatmulData& data) {
    using Shape = Shape<element, columns>;
    const unsigned tiles = tiles_of(shape, kCluster * Shape::kRows, Shape::kColumns).size();
    auto kernel = tma_store_kernel<element, columns, true, true>;
    if constexpr (bytes_of(element) == 2 && columns == 256) {
      kernel = with_layout(shape.layout,
                           [&]<bool left, bool right>() { return tma_store_kernel<element, columns, left, right>; });
    }
    const unsigned clusters = std::min(tiles, clusters_that_fit(kernel, kCluster, Shape::kThreads, Shape::kShared));
    const StoredProduct<element> stored{
        tma_product<element>(shape, data, Shape::kRows, Shape::kColumns / kCluster),
        tile::tensor_map(data.result, kBoxRows),
        tile::tensor_map(data.before_gelu.data == nullptr ? data.result : data.before_gelu, kBoxRows)};
    return KernelLaunch(kernel, {kCluster * clusters, Shape::kThreads, Shape::kShared, kCluster}, nullptr, stored);
  }
};

const MatmulRegistration registered(
    "tma_store",
    hopper_rung<Launch>(
        "tma_store",
        {.step = 13,
         .changes = "results through shared memory and TMA, partly in the tile's last stage, which is held for them; "
                    "tiles of 128 columns if they fill the SMs better; the next kernel is launched early",
         .reason =
             "a warp's registers hold pieces of 16 bytes of eight rows; TMA writes whole lines, checks the edges, "
             "and works while the next tile is multiplied",
         .prediction = "1.02 times multicast, ahead of the library's default",
         .measured = "H200, matmul bf16, 8192 × 8192 × 8192, layout nt: 693 T/s, 1.05 times multicast, 0.970 of the "
                     "best library",
         .design = "m=8192 n=8192 k=8192 dtype=bf16"},
        {.all_layouts = true, .early = true}));

}  // namespace
}  // namespace feedrate::ladder::tma_store
