#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace feedrate {

/// Nanoseconds of the host's monotonic clock; about 20 ns a call.
inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

/// UTC wall time, ISO 8601 with seconds ("2026-01-31T08:00:00Z"); `compact` for file names ("20260131T080000Z").
std::string utc_now(bool compact = false);

}  // namespace feedrate
