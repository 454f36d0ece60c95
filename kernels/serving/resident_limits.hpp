#pragma once

namespace feedrate {

/// Bytes of shared memory per block that serves messages, for all its teams together. This is below the 48 KiB that
/// every GPU allows without a kernel attribute.
inline constexpr unsigned kStagingBytes = 40 << 10;
/// Maximum number of units of a flagged slot that one thread reads per poll; they stay in registers.
inline constexpr unsigned kUnitsPerThread = 2;
/// The same maximum for polls that read several slots; serving a batch makes up for the larger kernel.
inline constexpr unsigned kUnitsPerThreadOfMany = 4;

/// The forms of a resident kernel: 0 serves by counter; 1 to kUnitsPerThread serve by flags with that many units per
/// thread; kMany serves by flags, with several messages per poll.
inline constexpr unsigned kMany = kUnitsPerThread + 1, kResidentForms = kMany + 1;

}  // namespace feedrate
