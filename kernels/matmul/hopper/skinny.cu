#include "kernels/matmul/hopper/hopper.cuh"

/// Products with few rows, as in the decoding of a language model: reading B limits. The instructions' 64 rows are
/// columns of the result, which are many, and their columns are its few rows.
namespace feedrate::ladder::skinny {
namespace {

constexpr unsigned kMostRows = 128;

/// Tiles of 64 columns and all `rows` rows (padded) of the result, in as many stages as fit. With few rows, a stage has
/// room for several boxes: reading 512 contiguous bytes of each row of B is faster than reading 128.
template <Element element, int rows>
struct Shape {
  static constexpr int kBoxes = rows <= 32 ? 4 : rows <= 64 ? 2 : 1;  // per operand and stage
  static constexpr int kColumns = 64, kThreads = 128 + 32;            // a warpgroup multiplies, a warp loads
  static constexpr int kLeft = kColumns * static_cast<int>(tile::kBoxRow),
                       kBox = kLeft + rows * static_cast<int>(tile::kBoxRow), kStage = kBoxes * kBox,
                       kStepElements = kBoxes * kBoxElements<element>;
  static constexpr int kMost = 224 * 1024, kStages = kMost / kStage;
  static constexpr int kShared = kStages * kStage;
};

template <Element element, int rows>
__global__ void __launch_bounds__(Shape<element, rows>::kThreads)
    skinny_kernel(const __grid_constant__ TmaProduct<element> product) {
  using Shape = Shape<element, rows>;
  extern __shared__ __align__(1024) std::byte stages[];  // per stage and box: columns of B, rows of A
  __shared__ StageBarriers<Shape::kStages> barriers;
  const int column = static_cast<int>(blockIdx.x) * Shape::kColumns, which = static_cast<int>(blockIdx.z);
  const int steps = (steps_of(product.depth) + Shape::kBoxes - 1) / Shape::kBoxes;
  cudaTriggerProgrammaticLaunchCompletion();  // the next kernel may be launched early
  if (threadIdx.x == 0) barriers.init(4);
  if (threadIdx.x == 128) {
    tile::prefetch(product.left);
    tile::prefetch(product.right);
  }
  __syncthreads();
  cudaGridDependencySynchronize();
  tile::Cursor<Shape::kStages> cursor;
  if (threadIdx.x >= 128) {
    if (threadIdx.x % 32 != 0) return;
    load_stages<Shape>(stages, barriers, cursor, steps, [&](std::byte* stage, tile::Barrier& full, int k) {
#pragma unroll
      for (int i = 0; i < Shape::kBoxes; ++i) {
        const int at = k + i * kBoxElements<element>;
        tile::load_box(stage + i * Shape::kBox, product.right, full, at, column, which);
        tile::load_box(stage + i * Shape::kBox + Shape::kLeft, product.left, full, at, 0, which);
      }
    });
    return;
  }
  TileSums<element, rows> sums;
  sums.restart();
  int before = -1;
  const auto leave = [&](int stage) {
    if (stage >= 0 && threadIdx.x % 32 == 0) tile::arrive(barriers.empty[stage]);
  };
  for (int step = 0; step < steps; ++step, cursor.advance()) {
    tile::wait(barriers.full[cursor.stage], cursor.parity);
#pragma unroll
    for (int i = 0; i < Shape::kBoxes; ++i) {
      const std::byte* const left = stages + cursor.stage * Shape::kStage + i * Shape::kBox;
      sums.start(left, left + Shape::kLeft);
      tile::await_products<sums.kPromotes ? 0 : 1>();
      sums.take();
      if (i == 0) leave(before);
    }
    before = cursor.stage;
  }
  tile::await_products<0>();
  const auto& values = sums.finished();
#pragma unroll
  for (int i = 0; i < sums.kCount; ++i) {
    const int at = column + tile::row_of_sum(i);
    if (at < product.n) {
      tile::store(product.result, which, tile::column_of_sum(i), at, product.m, product.n, {values[i]});
    }
  }
}

struct Launch {
  template <Element element>
  static auto make(const MatmulShape& shape, const MatmulData& data) {
    const auto with_rows = [&]<int rows>() {
      using Shape = Shape<element, rows>;
      return KernelLaunch(skinny_kernel<element, rows>,
                          {tiles_of(shape, kMostRows, Shape::kColumns), Shape::kThreads, Shape::kShared}, nullptr,
                          tma_product<element>(shape, data, rows, Shape::kColumns, tile::Fetch::bytes_128));
    };
    return shape.m <= 16   ? with_rows.template operator()<16>()
           : shape.m <= 32 ? with_rows.template operator()<32>()
           : shape.m <= 64 ? with_rows.template operator()<64>()
                           : with_rows.template operator()<128>();
  }
};

MatmulRung rung() {
  MatmulRung made = hopper_rung<Launch>(
      "skinny",
      {.step = 14,
       .changes =
           "for at most 128 rows: 64 columns of B take the place of the tile's rows, and all rows of A that of its "
           "columns; stages of 512 bytes of k; the next kernel is launched early",
       .reason = "memory limits: tiles of 128 rows would be mostly empty, and half as many blocks as SMs would load; "
                 "160 KiB of B per SM are on their way at any time; a launch would cost 5 % of the time",
       .prediction = "90 to 95 % of the memory's rate with 16 rows",
       .measured =
           "H200, matmul bf16, 16 × 8192 × 8192, layout nt: 63.0 T/s, 2.53 times tma_store, 1.00 of the best library",
       .design = "m=16 n=8192 k=8192 dtype=bf16"},
      {.early = true});
  made.why_unsupported = [others = made.why_unsupported](const MatmulShape& shape, const DeviceInfo& device) {
    return first_of({others(shape, device), shape.m > kMostRows ? "rung skinny computes at most 128 rows" : ""});
  };
  return made;
}

const MatmulRegistration registered("skinny", rung());

}  // namespace
}  // namespace feedrate::ladder::skinny
