#pragma once
#include <utility>

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

/// `left_rows` and `right_rows`: rows of the boxes that one copy brings if the operand lies along k.
template <Element element>
TmaProduct<element> tma_product(const MatmulShape& shape, const MatmulData& data, unsigned left_rows,
                                unsigned right_rows, tile::Fetch fetch = tile::Fetch::bytes_256) {
  using Out = typename ResultOf<element>::Type;
  return {tile::tensor_map(data.left, left_is_transposed(shape.layout) ? 64 : left_rows, fetch),
          tile::tensor_map(data.right, right_is_transposed(shape.layout) ? right_rows : 64, fetch),
          tile::result_of<Out>(data.result, data.bias, shape.scale, shape.epilogue == Epilogue::bias_gelu,
                               data.before_gelu.data),
          static_cast<int>(shape.m),
          static_cast<int>(shape.n),
          static_cast<int>(shape.k * bytes_of(element)),
          static_cast<int>(shape.batch)};
}

/// Elements in a row of a box.
template <Element element>
inline constexpr int kBoxElements = static_cast<int>(tile::kBoxRow / bytes_of(element));

/// Products of one tile of 64 × columns sums per warpgroup, 128 bytes of k at a time. Sums of fp8 move to registers of
/// fp32 after each step, because tensor cores keep too few of their bits; if registers suffice, two sets of sums take
/// turns, so that one is added while products write the other.
template <Element element, int columns>
class TileSums {
 public:
  static constexpr bool kPromotes = element == Element::fp8;
  static constexpr int kCount = columns / 2, kTurns = kPromotes && columns <= 128 ? 2 : 1;

  __device__ __forceinline__ void restart() {
    adds_ = 0;
    if constexpr (kPromotes) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) promoted_[i] = 0;
    }
  }
  /// Starts the products of one step. `left_along`, `right_along`: the operand lies along k.
  template <int turn = 0, bool left_along = true, bool right_along = true>
  __device__ __forceinline__ void start(const void* left, const void* right) {
    const std::uint64_t a = left_along ? tile::describe_rows(left) : tile::describe_columns(left);
    const std::uint64_t b = right_along ? tile::describe_rows(right) : tile::describe_columns(right);
    // Bytes / 16 that an instruction moves on: 32 bytes along k, or 16 rows of 128 bytes across k.
    constexpr int kLeftStep = left_along ? 2 : 128, kRightStep = right_along ? 2 : 128;
    tile::begin_products();
#pragma unroll
    for (int i = 0; i < static_cast<int>(tile::kBoxRow) / tile::kGroupDepth; ++i) {
      const int adds = i != 0 ? 1 : kPromotes ? 0 : adds_;
      tile::multiply_group<element, columns, left_along, right_along>(sums_[turn], a + i * kLeftStep,
                                                                      b + i * kRightStep, adds);
    }
    adds_ = 1;
    tile::end_products();
  }
  /// Takes the sums of a turn whose products have ended.
  template <int turn = 0>
  __device__ __forceinline__ void take() {
    if constexpr (kPromotes) {
      tile::pin_registers(sums_[turn]);
#pragma unroll
      for (int i = 0; i < kCount; ++i) promoted_[i] += sums_[turn][i];
    }
  }
  /// After the last products of a tile have ended: gelu(scale × sum + bias) of all sums, whose first column this is.
  /// Calls `store(values, matrix)` for the values before gelu, if they are asked for, and for the results.
  template <class Out, class Store>
  __device__ __forceinline__ void finish(const tile::Result<Out>& result, int column, int n, const Store& store) {
    float(&values)[kCount] = finished();
    if (result.scale != 1) {  // in assembly, so that it remains a branch
#pragma unroll
      for (int i = 0; i < kCount; ++i) asm volatile("mul.f32 %0, %0, %1;\n" : "+f"(values[i]) : "f"(result.scale));
    }
    if (result.bias != nullptr) {
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int at = column + tile::column_of_sum(i + j);
          const float bias = at < n ? result.bias[at] : 0;
          values[i + j] += bias;
          values[i + j + 2] += bias;
        }
      }
    }
    if (result.before != nullptr) store(values, result.before);
    if (result.gelu) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = ladder::gelu(values[i]);
    }
    store(values, result.data);
  }

  /// The sums, after the last products of a tile have ended.
  __device__ __forceinline__ float (&finished())[kCount] {
    if constexpr (kPromotes) {
      return promoted_;
    } else {
      tile::pin_registers(sums_[0]);
      if (adds_ == 0) {  // no product at all; in assembly, so that it remains a branch
#pragma unroll
        for (int i = 0; i < kCount; ++i) asm volatile("mov.f32 %0, 0f00000000;\n" : "=f"(sums_[0][i]));
      }
      return sums_[0];
    }
  }

 private:
  float sums_[kTurns][kCount];
  float promoted_[kPromotes ? kCount : 1];
  int adds_ = 0;  // 0: the next product overwrites the sums
};

/// Stores the values of a warpgroup whose first row and column these are, two neighbours at once if possible.
template <int count, class Out>
__device__ __forceinline__ void store_values(const float (&values)[count], Out* matrix, std::int64_t stride, int row,
                                             int column, int m, int n) {
  struct alignas(2 * sizeof(Out)) Pair {
    Out values[2];
  };
  const int at_row = row + tile::row_of_sum(0), at_column = column + tile::column_of_sum(0);
  const bool pairs = reinterpret_cast<std::uintptr_t>(matrix) % sizeof(Pair) == 0 && stride % 2 == 0;
  const bool whole = pairs && column + count * 2 <= n;
#pragma unroll
  for (int half = 0; half < 2; ++half) {  // rows 0 to 7 and 8 to 15 of each warp
    if (at_row + half * 8 >= m) continue;
    Out* const to = matrix + (at_row + half * 8) * stride + at_column;
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const int on = i / 4 * 8;  // columns from the thread's first one
      const Pair pair{tile::rounded_to<Out>(values[i + half * 2]), tile::rounded_to<Out>(values[i + half * 2 + 1])};
      if (whole || (pairs && at_column + on + 1 < n)) {
        *reinterpret_cast<Pair*>(to + on) = pair;
      } else {
        if (at_column + on < n) to[on] = pair.values[0];
        if (at_column + on + 1 < n) to[on + 1] = pair.values[1];
      }
    }
  }
}

/// Finishes and stores the sums of a warpgroup, whose first row and column these are, by stores of each thread.
template <class Sums, class Out>
__device__ __forceinline__ void finish_and_store(Sums& sums, const tile::Result<Out>& result, int which, int row,
                                                 int column, int m, int n) {
  sums.finish(result, column, n, [&](const auto& values, Out* matrix) {
    store_values(values, matrix + which * result.matrix, result.stride, row, column, m, n);
  });
}

/// Tiles of the rungs with a warpgroup that only loads: 128 rows for two warpgroups that multiply, and as many columns
/// as fit into their registers (fp8 needs three registers per sum). Stages of 128 bytes of k.
template <Element element, int buffer_bytes = 0, int columns = element == Element::fp8 ? 128 : 256>
struct WarpgroupTile {
  static constexpr int kRows = 128, kColumns = columns;
  static constexpr int kLeft = kRows * static_cast<int>(tile::kBoxRow),
                       kRight = kColumns * static_cast<int>(tile::kBoxRow);
  static constexpr int kStage = kLeft + kRight, kStepElements = kBoxElements<element>;
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

/// Starts the copies of an operand's tile of `rows` rows from (row, k). An operand that does not lie along k comes in
/// boxes of 64 rows, 8 KiB each. `blocks`: the blocks of the cluster that receive it, a bit each; 0: only this one.
template <int rows, bool along>
__device__ __forceinline__ void load_operand(std::byte* to, const CUtensorMap& map, tile::Barrier& barrier, int row,
                                             int k, int which, std::uint16_t blocks = 0) {
  constexpr int kBoxRows = along ? rows : 64;
#pragma unroll
  for (int box = 0; box < rows / kBoxRows; ++box) {
    std::byte* const place = to + box * kBoxRows * static_cast<int>(tile::kBoxRow);
    const int x = along ? k : row + box * kBoxRows, y = along ? row : k;
    if (blocks == 0) tile::load_box(place, map, barrier, x, y, which);
    if (blocks != 0) tile::load_box_to_all(place, map, barrier, x, y, which, blocks);
  }
}

/// Number of steps of 128 bytes of k.
__device__ inline int steps_of(int depth) {
  return (depth + static_cast<int>(tile::kBoxRow) - 1) / static_cast<int>(tile::kBoxRow);
}

/// Loads the stages of one tile, from `cursor` on, as they become empty. `load(stage, full, k)` starts the copies of a
/// stage, with all its bytes counted at `full`, from element k on.
template <class Shape, class Load>
__device__ __forceinline__ void load_stages(std::byte* stages, StageBarriers<Shape::kStages>& barriers,
                                            tile::Cursor<Shape::kStages>& cursor, int steps, const Load& load) {
  for (int step = 0; step < steps; ++step, cursor.advance()) {
    tile::wait(barriers.empty[cursor.stage], cursor.parity ^ 1);
    tile::arrive_expecting(barriers.full[cursor.stage], Shape::kStage);
    load(stages + cursor.stage * Shape::kStage, barriers.full[cursor.stage], step * Shape::kStepElements);
  }
}

/// Multiplies the stages of one tile, from `cursor` on. `rows`: byte of this warpgroup's rows in the left tile.
/// `leave(stage)` is called by all threads when a stage's products have ended. The last stage is only left during the
/// first products of the next tile; until then, `held` is its number. `held` is -1 if no stage is held, as before the
/// first tile. Sums with only one turn are taken at once, and hold no stage.
template <class Shape, bool left_along = true, bool right_along = true, class Sums, class Leave>
__device__ __forceinline__ void multiply_stages_and_hold(Sums& sums, std::byte* stages,
                                                         StageBarriers<Shape::kStages>& barriers,
                                                         tile::Cursor<Shape::kStages>& cursor, int steps, int rows,
                                                         int& held, const Leave& leave) {
  sums.restart();
  // Starts the products of a step, and ends those of the step before, while these run.
  const auto multiply = [&]<int turn, int other>(std::integer_sequence<int, turn, other>, int step) {
    tile::wait(barriers.full[cursor.stage], cursor.parity);
    const std::byte* const left = stages + cursor.stage * Shape::kStage;
    sums.template start<turn, left_along, right_along>(left + rows, left + Shape::kLeft);
    if constexpr (Sums::kPromotes && Sums::kTurns == 1) {
      tile::await_products<0>();
      leave(cursor.stage);
      sums.take();
    } else {
      tile::await_products<1>();
      if (held >= 0) leave(held);
      if (step > 0) sums.template take<other>();
      held = cursor.stage;
    }
    cursor.advance();
  };
  constexpr int kTurns = Sums::kTurns;
#pragma unroll 1
  for (int step = 0; step < steps; step += kTurns) {
    multiply(std::integer_sequence<int, 0, kTurns - 1>(), step);
    if (kTurns == 2 && step + 1 < steps) multiply(std::integer_sequence<int, kTurns - 1, 0>(), step + 1);
  }
  tile::await_products<0>();
  if (steps == 0 || (Sums::kPromotes && Sums::kTurns == 1)) return;
  if (kTurns == 1 || steps % 2 == 1) {
    sums.template take<0>();
  } else {
    sums.template take<kTurns - 1>();
  }
}

/// The same, and leaves the last stage too.
template <class Shape, bool left_along = true, bool right_along = true, class Sums, class Leave>
__device__ __forceinline__ void multiply_stages(Sums& sums, std::byte* stages, StageBarriers<Shape::kStages>& barriers,
                                                tile::Cursor<Shape::kStages>& cursor, int steps, int rows,
                                                const Leave& leave) {
  int held = -1;
  multiply_stages_and_hold<Shape, left_along, right_along>(sums, stages, barriers, cursor, steps, rows, held, leave);
  if (held >= 0) leave(held);
}

struct HopperOptions {
  bool all_layouts = false;  ///< also multiplies operands of 2 bytes that do not lie along k
  bool early = false;        ///< see launched()
};

/// A rung for compute capability 9.0 with launches from `Launch::make<element>(shape, data)`.
template <class Launch>
MatmulRung hopper_rung(const std::string& name, RungText text, HopperOptions options = {}) {
  return {.text = std::move(text),
          .why_unsupported =
              [name, options](const MatmulShape& shape, const DeviceInfo& device) {
                return why_no_tensor_product(shape, device, name, 90,
                                             options.all_layouts && bytes_of(shape.element) == 2);
              },
          .precision = [](const MatmulShape& shape) { return tensor_precision(shape, 128); },
          .make = launched(
              [](const MatmulShape& shape, const MatmulData& data) {
                return with_element(shape.element, [&]<Element element>() -> std::unique_ptr<Launchable> {
                  auto made = Launch::template make<element>(shape, data);
                  return std::make_unique<decltype(made)>(std::move(made));
                });
              },
              options.early)};
}

}  // namespace feedrate::ladder
