#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace feedrate {

/// Value of an absent trace file or mix.
inline constexpr auto kNoMix = "none";

/// The offered load. "closed" keeps a window of requests in flight. Otherwise requests are due according to a schedule,
/// which does not wait for results (experiments/harness/load/schedule.hpp).
struct LoadShape {
  std::string arrivals = "closed";
  std::uint64_t rate = 0;      ///< requests per second over all senders; 0: closed load, or the trace's own rate
  std::uint64_t burst_us = 0;  ///< for arrivals `bursts`: length of a burst
  std::uint64_t pause_us = 0;  ///< length of the pause after a burst
  std::string trace_file = kNoMix;    ///< for arrivals `trace`
  std::string payload_mix = kNoMix;   ///< sizes with their shares; `payload` is then the largest
  std::string priority_mix = kNoMix;  ///< priorities with their shares
  std::size_t payload = 64;           ///< bytes

  friend bool operator==(const LoadShape&, const LoadShape&) = default;
};

inline bool is_open(const LoadShape& shape) { return shape.arrivals != "closed"; }

}  // namespace feedrate
