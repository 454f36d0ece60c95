#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/axes.hpp"
#include "common/load_shape.hpp"

namespace feedrate {

/// Due times and kinds of the requests of a phase. A schedule is created before the phase from a shape and a seed
/// alone, so that all compared variants get the same arrivals. With several senders, request i belongs to sender i
/// modulo the number of senders.
struct Schedule {
  std::vector<std::uint64_t> due_ns;     ///< time since the start of the phase, ascending
  std::vector<std::uint32_t> payloads;   ///< bytes per request; empty: all requests have the same size
  std::vector<std::uint8_t> priorities;  ///< per request, 0 is the highest; empty: all are equal
  double seconds = 0;                    ///< length of the phase; a trace may end earlier than requested

  std::size_t size() const { return due_ns.size(); }
  /// Number of requests due within the first `ns` of the phase.
  std::uint64_t due_until(std::uint64_t ns) const;
  /// Mean bytes per request; `payload` if the schedule has no sizes.
  double mean_payload(std::size_t payload) const;
};

/// Creates the arrivals of an open shape:
///   constant  gaps of 1 / rate
///   poisson   exponential gaps with mean 1 / rate
///   bursts    an interrupted Poisson process: arrivals for `burst_us`, none for `pause_us`; `rate` is the overall mean
///   trace     the file's times, relative to its first time; stretched to `rate` if that is not 0
/// Sizes follow `payload_mix` and priorities follow `priority_mix`, unless a trace contains them. Throws BadInput, with
/// the line number, for an invalid trace.
Schedule make_schedule(const LoadShape&, double seconds, std::uint64_t seed);

/// Returns the reason why a shape is invalid (a missing option), or "" if it is valid.
std::string why_invalid_shape(const LoadShape&);

/// Maximum number of requests in one schedule. Each request takes 8 bytes here and 8 in its sender's part, and more
/// with sizes.
inline constexpr std::uint64_t kMaxArrivals = std::uint64_t{1} << 27;

/// Axes of a LoadShape without sizes and priorities, for experiments whose requests are all alike.
const Axes<LoadShape>& load_axes();

struct TraceFile {
  Schedule schedule;
  std::string workload;  ///< given by the trace, or ""
};

/// Reads recorded arrivals and shifts their times so that the first is 0. Formats:
///
/// - JSONL: { "time": seconds, "payload": bytes, "priority": 0…7, "workload": name } per line, all but "time" optional.
/// - CSV: a header line with these names, then values.
///
/// Times are in seconds and ascending. Either all lines have a payload or none has; the same applies to priorities. A
/// point has one workload, so a trace with workloads must have the same one in all lines. Throws BadInput with
/// the file, the line and the allowed form.
TraceFile read_trace(const std::string& file);

}  // namespace feedrate
