#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/launch.cuh"

namespace feedrate::hopper_products {

// One product multiplies a 64 × 16 by a 16 × 8 matrix of half-precision floats. The right operand is stored by columns.
inline constexpr std::size_t kRows = 64, kColumns = 8, kDepth = 16;
inline constexpr std::size_t kLeft = kRows * kDepth, kRight = kColumns * kDepth, kResult = kRows * kColumns;
inline constexpr std::size_t kOperandBytes = 2 * (kLeft + kRight), kResultBytes = 4 * kResult;
inline constexpr double kOperations = 2.0 * kRows * kColumns * kDepth;

using Half = std::uint16_t;  ///< the bits of a half-precision float

/// Computes one product in plain code.
void multiply(const Half* left, const Half* right, float* result);
/// The kernel for `count` products, one block per product. The two operands of a product are adjacent in memory.
KernelLaunch<const Half*, float*> products(const std::byte* operands, std::byte* results, unsigned count);

}  // namespace feedrate::hopper_products
