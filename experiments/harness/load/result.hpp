#pragma once
#include <cstdint>
#include <map>
#include <span>

#include "experiments/harness/measure/histogram.hpp"

namespace feedrate {

/// How much was due and had not ended, read every millisecond of an open load's timed phase.
struct Backlog {
  double begin = 0, end = 0, most = 0;  ///< requests: means of the first and the last tenth, and the most
  double per_second = 0;                ///< its trend
};
/// `readings` of it, evenly spread over `seconds`.
Backlog backlog_of(std::span<const double> readings, double seconds);

/// A closed load's first window may take this many times the phase.
inline constexpr double kLongestRamp = 10;
/// How long what is due is still submitted when an open load's phase is over, seconds.
inline constexpr double kGraceSeconds = 1;

/// What a timed phase of load showed. A request is a message, a read, a batch: what is offered. Times are ns.
struct LoadResult {
  std::uint64_t began_ns = 0;  ///< of the host's clock
  double ramp_seconds = 0;     ///< closed load: until the first window had ended; not part of `seconds`
  bool ramped = true;          ///< it had, before the phase was given up
  double seconds = 0;          ///< what `received` took
  std::uint64_t received = 0;  ///< requests that ended in that time, checked
  Histogram latency;           ///< until a request ended: from submit on, in an open load from when it was due
  // Open load.
  Histogram service;                          ///< from submit on
  Histogram without_own_lag;                  ///< `latency` without the generator's own lag
  Histogram send_lag;                         ///< from when a request was due to its submit
  Histogram own_lag;                          ///< the part of it that nothing else is to blame for
  std::map<unsigned, Histogram> by_priority;  ///< `latency` of each class, if the schedule has several
  std::uint64_t due = 0, unsent = 0;          ///< requests of the schedule; never submitted
  double blocked_share = 0;                   ///< of the generator's time: there was no room
  double granularity_ns = 0;                  ///< between two polls for what is due; 0: something always was
  Backlog backlog;
};

}  // namespace feedrate
