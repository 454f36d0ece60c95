#pragma once
#include <cstdint>

namespace feedrate::storage {

/// Work of this process so far, by the kernel's counters.
struct IoCounters {
  std::uint64_t read_bytes = 0, written_bytes = 0;  ///< from and to block devices, by /proc/self/io
  double cpu_seconds = 0;                           ///< of all threads, user and system

  static IoCounters now();
};
IoCounters operator-(const IoCounters&, const IoCounters&);

}  // namespace feedrate::storage
