#pragma once
#include <cuda.h>

#include <cstdint>

#include "kernels/ladder/matrix.hpp"

namespace feedrate::tile {

/// Number of bytes in a row of a box: rows of this length are swizzled, so that tensor cores read them without bank
/// conflicts.
inline constexpr unsigned kBoxRow = 128;

/// Number of bytes that the L2 cache fetches from DRAM at once for a copy. Half of 256 bytes belong to the next box
/// along the rows. If a copy brings several of these boxes, such fetches only add traffic between the halves of the
/// cache.
enum class Fetch : std::uint8_t { bytes_128, bytes_256 };

/// Describes a batch of matrices for TMA copies of boxes of `rows` rows × kBoxRow bytes, swizzled by 128 bytes. Reads
/// beyond the matrices give 0; writes there have no effect. Rows must begin at multiples of 16 bytes. Throws Failure.
CUtensorMap tensor_map(const ladder::Matrix&, unsigned rows, Fetch fetch = Fetch::bytes_256);

}  // namespace feedrate::tile
