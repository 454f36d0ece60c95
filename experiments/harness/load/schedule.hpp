#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/load_shape.hpp"

namespace feedrate {

/// When requests are due, and which: made before a phase begins, from a shape and a seed alone, so that all that are
/// compared get the same arrivals. Of several senders, sender i modulo their number has request i.
struct Schedule {
  std::vector<std::uint64_t> due_ns;     ///< since the phase began, ascending
  std::vector<std::uint32_t> payloads;   ///< bytes of each; empty: all are alike
  std::vector<std::uint8_t> priorities;  ///< of each, 0 is the highest; empty: all are alike
  double seconds = 0;                    ///< the phase; a trace may end it sooner than asked

  std::size_t size() const { return due_ns.size(); }
  /// How many are due up to `ns` after the begin.
  std::uint64_t due_until(std::uint64_t ns) const;
  /// Bytes of a request; `payload` if the schedule gives no sizes.
  double mean_payload(std::size_t payload) const;
};

/// The arrivals of an open shape:
///   constant  1 / rate apart
///   poisson   exponential gaps of mean 1 / rate
///   bursts    an interrupted Poisson process: `burst_us` of arrivals, `pause_us` of none; `rate` is the mean over both
///   trace     the file's times, from its first on; stretched to `rate` when that is not 0
/// Sizes follow `payload_mix`, priorities `priority_mix`, unless a trace gives them. Throws BadInput for a trace that
/// can't be read, naming the line.
Schedule make_schedule(const LoadShape&, double seconds, std::uint64_t seed);

/// Why a shape can't be: an option is missing; empty when it can.
std::string refuse_shape(const LoadShape&);

/// The most requests of one schedule: 8 bytes each and 8 in its sender's part of it, more with sizes.
inline constexpr std::uint64_t kMostArrivals = std::uint64_t{1} << 27;

}  // namespace feedrate
