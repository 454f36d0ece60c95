#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/launch.cuh"

namespace feedrate::hopper_products {

// A product is of 64 × 16 and 16 × 8 half-precision floats; the right operand lies with its columns one after another.
inline constexpr std::size_t kRows = 64, kColumns = 8, kDepth = 16;
inline constexpr std::size_t kLeft = kRows * kDepth, kRight = kColumns * kDepth, kResult = kRows * kColumns;
inline constexpr std::size_t kOperandBytes = 2 * (kLeft + kRight), kResultBytes = 4 * kResult;
inline constexpr double kOperations = 2.0 * kRows * kColumns * kDepth;

using Half = std::uint16_t;  ///< its bits

/// One product by plain code.
void multiply(const Half* left, const Half* right, float* result);
/// The kernel for `count` products, one block each; of each, the operands lie one behind the other.
KernelLaunch<const Half*, float*> products(const std::byte* operands, std::byte* results, unsigned count);

}  // namespace feedrate::hopper_products
