#pragma once
#include <cstdint>

namespace feedrate::storage {

/// Work of this process so far, by the kernel's counters.
struct IoCounters {
  std::uint64_t read_bytes = 0, written_bytes = 0;  ///< bytes from and to block devices, according to /proc/self/io
  double cpu_seconds = 0;                           ///< user and system time of all threads

  static IoCounters now();
};
IoCounters operator-(const IoCounters&, const IoCounters&);

}  // namespace feedrate::storage
