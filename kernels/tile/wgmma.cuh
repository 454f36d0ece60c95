#pragma once
#include <cstdint>

#include "kernels/ladder/element.hpp"
#include "kernels/tile/async_copy.cuh"

/// Tensor cores by warpgroup, 128 threads (PTX ISA, "wgmma.mma_async"; compute capability 9.0). Both operands are in
/// shared memory, in rows of 128 bytes that were swizzled by 128 bytes: along k or, if elements have 2 bytes, across k.
namespace feedrate::tile {

/// Bytes of k per instruction, for all element types.
inline constexpr int kGroupDepth = 32;

/// Describes rows from `operand`, which is aligned to 1024 bytes. k moves on by adding bytes / 16.
__device__ inline std::uint64_t describe_rows(const void* operand) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kStrideOfEightRows = 1024;
  const std::uint64_t address = shared_address(operand);
  return (address >> 4 & 0x3FFF) | std::uint64_t{1} << 16 | kStrideOfEightRows >> 4 << 32 | kSwizzle128;
}

/// Describes columns from `operand`: boxes of 64 elements (of 2 bytes) across k × 64 k, one after another. k moves on
/// by adding bytes / 16, with 128 bytes per k.
__device__ inline std::uint64_t describe_columns(const void* operand) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kStrideOfBoxes = 8192, kStrideOfEightK = 1024;
  const std::uint64_t address = shared_address(operand);
  return (address >> 4 & 0x3FFF) | kStrideOfBoxes >> 4 << 16 | kStrideOfEightK >> 4 << 32 | kSwizzle128;
}

/// Before the first instruction that uses registers which other instructions wrote.
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
/// Ends a group of instructions.
__device__ inline void end_products() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
/// Waits until at most `groups` groups run.
template <int groups>
__device__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(groups) : "memory");
}

/// Keeps the compiler from moving uses of these registers across this place, since it does not know that the products
/// write them asynchronously.
template <int count>
__device__ void pin_registers(float (&registers)[count]) {
#pragma unroll
  for (float& each : registers) asm volatile("" : "+f"(each)::"memory");
}

// The operand lists of these instructions cannot be made by templates.
#define FEEDRATE_8(i)                                                                                \
  "+f"(sums[i]), "+f"(sums[(i) + 1]), "+f"(sums[(i) + 2]), "+f"(sums[(i) + 3]), "+f"(sums[(i) + 4]), \
      "+f"(sums[(i) + 5]), "+f"(sums[(i) + 6]), "+f"(sums[(i) + 7])
#define FEEDRATE_16(i) FEEDRATE_8(i), FEEDRATE_8((i) + 8)
#define FEEDRATE_32(i) FEEDRATE_16(i), FEEDRATE_16((i) + 16)
#define FEEDRATE_64(i) FEEDRATE_32(i), FEEDRATE_32((i) + 32)
#define FEEDRATE_96(i) FEEDRATE_64(i), FEEDRATE_32((i) + 64)
#define FEEDRATE_128(i) FEEDRATE_64(i), FEEDRATE_64((i) + 64)
#define FEEDRATE_REGISTERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define FEEDRATE_REGISTERS_16 FEEDRATE_REGISTERS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define FEEDRATE_REGISTERS_32 \
  FEEDRATE_REGISTERS_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FEEDRATE_REGISTERS_64                                                                         \
  FEEDRATE_REGISTERS_32                                                                               \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
  "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define FEEDRATE_REGISTERS_96                                                               \
  FEEDRATE_REGISTERS_64                                                                     \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, " \
  "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define FEEDRATE_REGISTERS_128                                                                                   \
  FEEDRATE_REGISTERS_96                                                                                          \
  ", %96, %97, %98, %99, %100, %101, "                                                                           \
  "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, " \
  "%120, %121, %122, %123, %124, %125, %126, %127"
// `count` registers; the numbers of the operands after them: left, right, adds, and for 16-bit types the directions.
#define FEEDRATE_WGMMA(size, types, count, left_at, right_at, adds_at, more)                         \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #adds_at                                   \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #size types " {" FEEDRATE_REGISTERS_##count \
               "}, %" #left_at ", %" #right_at ", adds" more ";\n}\n"                                \
               : FEEDRATE_##count(0)                                                                 \
               : "l"(left), "l"(right), "r"(adds), "n"(left_along ? 0 : 1), "n"(right_along ? 0 : 1))
#define FEEDRATE_WGMMA_OF(size, count, left_at, right_at, adds_at, turn_left, turn_right)     \
  do {                                                                                        \
    if constexpr (element == Element::tf32)                                                   \
      FEEDRATE_WGMMA(size, "k8.f32.tf32.tf32", count, left_at, right_at, adds_at, ", 1, 1");  \
    if constexpr (element == Element::bf16)                                                   \
      FEEDRATE_WGMMA(size, "k16.f32.bf16.bf16", count, left_at, right_at, adds_at,            \
                     ", 1, 1, %" #turn_left ", %" #turn_right);                               \
    if constexpr (element == Element::fp16)                                                   \
      FEEDRATE_WGMMA(size, "k16.f32.f16.f16", count, left_at, right_at, adds_at,              \
                     ", 1, 1, %" #turn_left ", %" #turn_right);                               \
    if constexpr (element == Element::fp8)                                                    \
      FEEDRATE_WGMMA(size, "k32.f32.e4m3.e4m3", count, left_at, right_at, adds_at, ", 1, 1"); \
  } while (false)

/// sums (64 × columns) += left (64 rows × 32 bytes) × right (columns × 32 bytes), or = if `adds` is 0. Thread t of the
/// warpgroup has in sums[i] the element of row t / 32 × 16 + t % 32 / 4 + i / 2 % 2 × 8 and column
/// i / 4 × 8 + t % 4 × 2 + i % 2.
template <ladder::Element element, int columns, bool left_along = true, bool right_along = true>
__device__ __forceinline__ void multiply_group(float (&sums)[columns / 2], std::uint64_t left, std::uint64_t right,
                                               int adds) {
  static_assert((left_along && right_along) || ladder::bytes_of(element) == 2);
  using ladder::Element;
  if constexpr (columns == 16) {
    FEEDRATE_WGMMA_OF(16, 8, 8, 9, 10, 11, 12);
  } else if constexpr (columns == 32) {
    FEEDRATE_WGMMA_OF(32, 16, 16, 17, 18, 19, 20);
  } else if constexpr (columns == 64) {
    FEEDRATE_WGMMA_OF(64, 32, 32, 33, 34, 35, 36);
  } else if constexpr (columns == 128) {
    FEEDRATE_WGMMA_OF(128, 64, 64, 65, 66, 67, 68);
  } else if constexpr (columns == 192) {
    FEEDRATE_WGMMA_OF(192, 96, 96, 97, 98, 99, 100);
  } else {
    static_assert(columns == 256);
    FEEDRATE_WGMMA_OF(256, 128, 128, 129, 130, 131, 132);
  }
}
#undef FEEDRATE_WGMMA_OF
#undef FEEDRATE_WGMMA
#undef FEEDRATE_REGISTERS_128
#undef FEEDRATE_REGISTERS_96
#undef FEEDRATE_REGISTERS_64
#undef FEEDRATE_REGISTERS_32
#undef FEEDRATE_REGISTERS_16
#undef FEEDRATE_REGISTERS_8
#undef FEEDRATE_128
#undef FEEDRATE_96
#undef FEEDRATE_64
#undef FEEDRATE_32
#undef FEEDRATE_16
#undef FEEDRATE_8

/// Row and column of sums[i] of this thread's warpgroup.
__device__ inline int row_of_sum(int i) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}
__device__ inline int column_of_sum(int i) { return i / 4 * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + i % 2; }

/// Stores four matrices of 8 rows × 16 bytes to shared memory (PTX ISA, "stmatrix"). Each lane gives the address of one
/// row: lanes 0 to 7 those of the first matrix, and so on. Lane l has bytes l % 4 × 4 to + 3 of row l / 4 of matrix i
/// in from[i], like sums of products.
__device__ inline void store_matrices(void* row, const std::uint32_t (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(shared_address(row)),
               "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}

/// Gives registers back, or takes them: all warps of a warpgroup call it.
template <int registers>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(registers));
}
template <int registers>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(registers));
}

}  // namespace feedrate::tile
