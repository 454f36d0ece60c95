#pragma once
#include <cstdint>
#include <string>
#include <vector>

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

/// "none", or an empty file name or mix.
inline constexpr auto kNoMix = "none";

/// What load is offered. "closed" keeps a window full. Otherwise requests are due by a schedule, which does not wait for
/// results.
struct LoadShape {
  std::string arrivals = "closed";
  std::uint64_t rate = 0;      ///< requests a second; 0 with closed load, or a trace's own
  std::uint64_t burst_us = 0;  ///< arrivals `bursts`: how long requests arrive, then pause
  std::uint64_t pause_us = 0;
  std::string trace_file = kNoMix;    ///< arrivals `trace`
  std::string payload_mix = kNoMix;   ///< sizes by share; `payload` is then the largest
  std::string priority_mix = kNoMix;  ///< priorities by share
  std::size_t payload = 0;            ///< bytes
};

inline bool is_open(const LoadShape& shape) { return shape.arrivals != "closed"; }

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
