#pragma once
#include <cuda.h>

#include "kernels/ladder/matrix.hpp"

namespace feedrate::tile {

/// Number of bytes in a row of a box: rows of this length are swizzled, so that tensor cores read them without bank
/// conflicts.
inline constexpr unsigned kBoxRow = 128;

/// What the L2 cache fetches from DRAM at once for a copy. 256 bytes also bring what the copy of the next box along the
/// rows needs; without use for them they are traffic that moves nothing.
enum class Fetch : std::uint8_t { bytes_128, bytes_256 };

/// Describes a batch of matrices for TMA copies of boxes of `rows` rows × kBoxRow bytes, swizzled by 128 bytes. Reads
/// beyond the matrices give 0; writes there have no effect. Rows must begin at multiples of 16 bytes. Throws Failure.
CUtensorMap tensor_map(const ladder::Matrix&, unsigned rows, Fetch fetch = Fetch::bytes_256);

}  // namespace feedrate::tile
