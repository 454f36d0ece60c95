#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/workload.hpp"
#include "variants/feeding/point.hpp"

namespace feedrate {

/// When messages are due, and which: made before a phase begins, from the point and a seed alone, so that every queue
/// that is compared gets the same arrivals. Message i is sent by producer i modulo their number.
struct Schedule {
  std::vector<std::uint64_t> due_ns;     ///< since the phase began, ascending
  std::vector<std::uint32_t> payloads;   ///< bytes of each; empty: all are the point's
  std::vector<std::uint8_t> priorities;  ///< of each, 0 is the highest; empty: all are alike
  double seconds = 0;                    ///< the phase; a trace may end it sooner than asked

  std::size_t size() const { return due_ns.size(); }
  /// How many are due up to `ns` after the begin.
  std::uint64_t due_until(std::uint64_t ns) const;
  /// Bytes of a message; `payload` where the schedule gives no sizes.
  double mean_payload(std::size_t payload) const;
};

/// The arrivals that a point asks for:
///   constant  1 / rate apart
///   poisson   exponential gaps of mean 1 / rate
///   bursts    an interrupted Poisson process: `burst_us` of arrivals, `pause_us` of none; `rate` is the mean over both
///   trace     the file's times, from its first on; stretched to `rate` when that is not 0
/// Sizes follow `payload_mix`, priorities `priority_mix`, unless a trace gives them. Throws BadInput for a trace that
/// can't be read, naming the line.
Schedule make_schedule(const Point&, double seconds, std::uint64_t seed);

/// Why a point's load can't be; empty when it can. Raises `payload` to the largest of the mix or the trace.
std::string refuse_load(Point&, const Workload&);

/// The most messages of one schedule: 8 bytes each and 8 in its sender's part of it, more with sizes.
inline constexpr std::uint64_t kMostArrivals = std::uint64_t{1} << 27;

inline bool is_open(const Point& point) { return point.arrivals != "closed"; }

}  // namespace feedrate
