#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace feedrate {

/// "none", or an empty file name or mix.
inline constexpr auto kNoMix = "none";

/// What load is offered. "closed" keeps a window full. Otherwise requests are due by a schedule, which does not wait for
/// results (experiments/harness/load/schedule.hpp).
struct LoadShape {
  std::string arrivals = "closed";
  std::uint64_t rate = 0;      ///< requests per second of all senders; 0 with closed load, or a trace's own
  std::uint64_t burst_us = 0;  ///< arrivals `bursts`: how long requests arrive, then pause
  std::uint64_t pause_us = 0;
  std::string trace_file = kNoMix;    ///< arrivals `trace`
  std::string payload_mix = kNoMix;   ///< sizes by share; `payload` is then the largest
  std::string priority_mix = kNoMix;  ///< priorities by share
  std::size_t payload = 64;           ///< bytes

  friend bool operator==(const LoadShape&, const LoadShape&) = default;
};

inline bool is_open(const LoadShape& shape) { return shape.arrivals != "closed"; }

}  // namespace feedrate
