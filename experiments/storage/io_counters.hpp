#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace feedrate::storage {

/// Work of this process, and of a block device, so far, according to the kernel's counters.
struct IoCounters {
  std::uint64_t read_bytes = 0, written_bytes = 0;  ///< bytes from and to block devices, according to /proc/self/io
  double cpu_seconds = 0;                           ///< user and system time of all threads

  /// Bytes that the device transferred for all processes; none if the kernel does not count them.
  std::optional<std::uint64_t> device_read_bytes, device_written_bytes;

  /// `device`: "major:minor" of a block device.
  static IoCounters now(const std::string& device);
};
IoCounters operator-(const IoCounters&, const IoCounters&);

}  // namespace feedrate::storage
