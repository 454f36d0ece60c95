#pragma once
#include <cstdint>

#include "kernels/ladder/element.hpp"
#include "kernels/tile/async_copy.cuh"

/// Tensor cores by warp (PTX ISA, "ldmatrix" and "mma"). Fragments of all types are 32 bytes deep: 8 tf32, 16 bf16 or
/// fp16, or 32 fp8 elements.
namespace feedrate::tile {

/// Loads four matrices of 8 rows × 16 bytes. Each lane gives the address of one row: lanes 0 to 7 those of the first
/// matrix, and so on. Register i receives matrix i: lane l has bytes l % 4 × 4 to + 3 of row l / 4.
__device__ inline void load_matrices(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

/// sums (16 × 8) += left (16 rows × 32 bytes) × right (8 columns × 32 bytes). Lane l has rows l / 4 and l / 4 + 8 and
/// columns l % 4 × 2 and + 1 of the sums.
template <ladder::Element element>
__device__ void multiply(float (&sums)[4], const std::uint32_t (&left)[4], std::uint32_t right0, std::uint32_t right1) {
#define FEEDRATE_MMA(shape_and_types)                                       \
  asm volatile("mma.sync.aligned." shape_and_types                          \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "   \
               "%2, %3};\n"                                                 \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1))
  using ladder::Element;
  if constexpr (element == Element::tf32) FEEDRATE_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  if constexpr (element == Element::bf16) FEEDRATE_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  if constexpr (element == Element::fp16) FEEDRATE_MMA("m16n8k16.row.col.f32.f16.f16.f32");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if constexpr (element == Element::fp8) FEEDRATE_MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32");
#endif
#undef FEEDRATE_MMA
}

}  // namespace feedrate::tile
