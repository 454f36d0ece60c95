#pragma once

namespace feedrate {

/// Shared memory of a block that works on messages, all its teams together; below the 48 KiB that every GPU gives
/// without asking.
inline constexpr unsigned kStagingBytes = 40 << 10;
/// The most units of a flagged slot that one thread reads at a look; they stay in registers.
inline constexpr unsigned kUnitsPerThread = 2;
/// As many, where a look takes in several slots: a batch makes up for the larger kernel.
inline constexpr unsigned kUnitsPerThreadOfMany = 4;

/// The forms of a resident kernel: 0 serves by counter, 1 to kUnitsPerThread by flags with so many units in each
/// thread, and kMany by flags, several messages at a look.
inline constexpr unsigned kMany = kUnitsPerThread + 1, kResidentForms = kMany + 1;

}  // namespace feedrate
