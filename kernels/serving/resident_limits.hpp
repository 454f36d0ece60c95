#pragma once

namespace feedrate {

/// Shared memory of a block that works on messages, all its teams together; below the 48 KiB that every GPU gives
/// without asking.
inline constexpr unsigned kStagingBytes = 40 << 10;
/// The most units of a flagged slot that one thread reads at a look; they stay in registers.
inline constexpr unsigned kUnitsPerThread = 2;
/// As many, where a look takes in several slots: a batch makes up for the larger kernel.
inline constexpr unsigned kUnitsPerThreadOfMany = 4;

}  // namespace feedrate
