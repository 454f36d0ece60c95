#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libraries/storage/engine.hpp"

namespace feedrate::storage {

/// Bytes of a source and their place in device memory. `kind`: that of their records, for messages.
struct Extent {
  std::uint64_t start = 0, bytes = 0;
  std::byte* place = nullptr;
  unsigned kind = 0;
};

/// One request to an engine, which moves the pieces from `first` on. The pieces lie in `bytes` bytes of a file.
struct Run {
  unsigned file = 0;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  std::size_t first = 0, pieces = 0;
};

struct Plan {
  std::vector<Run> runs;
  std::vector<Piece> pieces;    ///< of the runs, one run after another
  std::vector<Extent> extents;  ///< those given; a piece is a part of one
  std::vector<std::size_t> of;  ///< the extent of each piece
};

struct PlanRules {
  std::size_t block = 0;      ///< largest run, a multiple of `alignment`
  std::size_t gap = 0;        ///< most bytes between two pieces of one run
  std::size_t alignment = 1;  ///< runs begin at multiples of it, and end at one or at the end of the file
};

/// Joins extents into runs. `begins`: the first byte of each file in the source, and the end of the last. The extents
/// lie within the source; they may overlap.
Plan plan_of(std::vector<Extent> extents, std::span<const std::uint64_t> begins, const PlanRules&);

}  // namespace feedrate::storage
