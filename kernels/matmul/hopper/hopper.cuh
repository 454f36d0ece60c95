#pragma once
#include "kernels/matmul/cuda/tensor.cuh"
#include "kernels/tile/tensor_map.hpp"
#include "kernels/tile/tma.cuh"
#include "kernels/tile/wgmma.cuh"

/// Parts of the rungs for compute capability 9.0: TMA brings tiles of 128 bytes of k, warpgroups multiply them.
namespace feedrate::ladder {

/// A product whose operands TMA copies. `depth`: bytes of k.
template <Element element>
struct TmaProduct {
  CUtensorMap left, right;
  tile::Result<typename ResultOf<element>::Type> result;
  int m, n, depth, batch;
};

/// `left_rows` and `right_rows`: rows of the boxes that one copy brings.
template <Element element>
TmaProduct<element> tma_product(const MatmulShape& shape, const MatmulData& data, unsigned left_rows,
                                unsigned right_rows) {
  using Out = typename ResultOf<element>::Type;
  return {tile::tensor_map(data.left, left_rows),
          tile::tensor_map(data.right, right_rows),
          tile::result_of<Out>(data.result, data.bias, shape.scale, shape.epilogue == Epilogue::bias_gelu),
          static_cast<int>(shape.m),
          static_cast<int>(shape.n),
          static_cast<int>(shape.k * bytes_of(element)),
          static_cast<int>(shape.batch)};
}

/// Elements in a row of a box.
template <Element element>
inline constexpr int kBoxElements = static_cast<int>(tile::kBoxRow / bytes_of(element));

/// Products of one tile of 64 × columns sums per warpgroup, 128 bytes of k at a time. Sums of fp8 move to registers of
/// fp32 after each step, because tensor cores keep too few of their bits.
template <Element element, int columns>
class TileSums {
 public:
  static constexpr bool kPromotes = element == Element::fp8;
  static constexpr int kCount = columns / 2;

  __device__ __forceinline__ void restart() {
    adds_ = 0;
    if constexpr (kPromotes) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) promoted_[i] = 0;
    }
  }
  /// Starts the products of one step.
  __device__ __forceinline__ void start(const void* left, const void* right) {
    const std::uint64_t a = tile::describe_rows(left), b = tile::describe_rows(right);
    tile::begin_products();
#pragma unroll
    for (int i = 0; i < static_cast<int>(tile::kBoxRow) / tile::kGroupDepth; ++i) {
      tile::multiply_group<element, columns>(sums_, a + i * tile::kGroupDepth / 16, b + i * tile::kGroupDepth / 16,
                                             i != 0      ? 1
                                             : kPromotes ? 0
                                                         : adds_);
    }
    adds_ = 1;
    tile::end_products();
    if constexpr (kPromotes) {
      tile::await_products<0>();
      tile::pin_registers(sums_);
#pragma unroll
      for (int i = 0; i < kCount; ++i) promoted_[i] += sums_[i];
    }
  }
  /// Waits for all products.
  __device__ __forceinline__ void finish() {
    tile::await_products<0>();
    tile::pin_registers(sums_);
  }
  __device__ __forceinline__ float at(int i) const {
    if constexpr (kPromotes) return promoted_[i];
    return adds_ == 0 ? 0 : sums_[i];  // no product at all
  }
  /// Stores the sums of this warpgroup, whose first row and column these are.
  template <class Out>
  __device__ __forceinline__ void store(const tile::Result<Out>& result, int which, int row, int column, int m,
                                        int n) const {
    const int at_row = row + tile::row_of_sum(0), at_column = column + tile::column_of_sum(0);
    const bool pairs = reinterpret_cast<std::uintptr_t>(result.data) % (2 * sizeof(Out)) == 0 && result.stride % 2 == 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // rows 0 to 7 and 8 to 15 of each warp
      if (at_row + half * 8 >= m) continue;
      Out* const to = result.at(which, at_row + half * 8, at_column);
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
        const int on = i / 4 * 8;  // columns from the thread's first one
        if (at_column + on >= n) continue;
        const Out first = tile::rounded_to<Out>(result.finished(at(i + half * 2), at_column + on));
        const bool second = at_column + on + 1 < n;
        const Out next = tile::rounded_to<Out>(result.finished(at(i + half * 2 + 1), at_column + on + second));
        if (pairs && second) {
          struct alignas(2 * sizeof(Out)) Pair {
            Out values[2];
          };
          *reinterpret_cast<Pair*>(to + on) = {first, next};
        } else {
          to[on] = first;
          if (second) to[on + 1] = next;
        }
      }
    }
  }

 private:
  float sums_[kCount];
  float promoted_[kPromotes ? kCount : 1];
  int adds_ = 0;  // 0: the next product overwrites the sums
};

/// Tiles of the rungs with a warpgroup that only loads: 128 rows for two warpgroups that multiply, and as many columns
/// as fit into their registers. Stages of 128 bytes of k.
template <Element element, int buffer_bytes = 0>
struct WarpgroupTile {
  static constexpr int kRows = 128, kColumns = bytes_of(element) == 2 ? 256 : 128;
  static constexpr int kLeft = kRows * static_cast<int>(tile::kBoxRow),
                       kRight = kColumns * static_cast<int>(tile::kBoxRow);
  static constexpr int kStage = kLeft + kRight;
  static constexpr int kMostShared = 227 * 1024 - 2048;  // of a block; the rest for barriers and alignment
  static constexpr int kStages = (kMostShared - buffer_bytes) / kStage < 8 ? (kMostShared - buffer_bytes) / kStage : 8;
  static constexpr int kShared = kStages * kStage + buffer_bytes;
  static constexpr int kMultipliers = 2, kThreads = 128 * (1 + kMultipliers);
  static constexpr int kLoaderRegisters = 40, kMultiplierRegisters = 232;  // 128 × 40 + 256 × 232 ≤ 65,536
};

/// The barriers of the stages. A stage is full when its bytes have arrived, and empty when all warps that multiply have
/// left it, in all blocks that share it.
template <int stages>
struct StageBarriers {
  tile::Barrier full[stages], empty[stages];

  /// By one thread. `warps`: number of warps that leave each stage.
  __device__ void init(unsigned warps) {
    for (int i = 0; i < stages; ++i) {
      tile::init(full[i], 1);
      tile::init(empty[i], warps);
    }
    tile::after_init();
  }
};

/// Number of steps of 128 bytes of k.
__device__ inline int steps_of(int depth) {
  return (depth + static_cast<int>(tile::kBoxRow) - 1) / static_cast<int>(tile::kBoxRow);
}

/// Multiplies the stages of one tile, from `cursor` on. `rows`: byte of this warpgroup's rows in the left tile.
/// `leave(stage)` is called by all threads when a stage's products have ended.
template <class Shape, class Sums, class Leave>
__device__ __forceinline__ void multiply_stages(Sums& sums, std::byte* stages, StageBarriers<Shape::kStages>& barriers,
                                                tile::Cursor<Shape::kStages>& cursor, int steps, int rows,
                                                const Leave& leave) {
  sums.restart();
  int before = -1;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    tile::wait(barriers.full[cursor.stage], cursor.parity);
    const std::byte* const left = stages + cursor.stage * Shape::kStage;
    sums.start(left + rows, left + Shape::kLeft);
    tile::await_products<1>();
    if (before >= 0) leave(before);
    before = cursor.stage;
    cursor.advance();
  }
  sums.finish();
  if (before >= 0) leave(before);
}

/// A rung for compute capability 9.0 with launches from `Launch::make<element>(shape, data)`.
template <class Launch>
MatmulRung hopper_rung(const std::string& name, RungText text) {
  return {
      .text = std::move(text),
      .why_unsupported = [name](const MatmulShape& shape,
                                const DeviceInfo& device) { return why_no_tensor_product(shape, device, name, 90); },
      .precision = [](const MatmulShape& shape) { return tensor_precision(shape, 128); },
      .make = launched([](const MatmulShape& shape, const MatmulData& data) {
        return with_element(shape.element, [&]<Element element>() -> std::unique_ptr<Launchable> {
          auto made = Launch::template make<element>(shape, data);
          return std::make_unique<decltype(made)>(std::move(made));
        });
      })};
}

}  // namespace feedrate::ladder
