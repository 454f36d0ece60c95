#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "common/error.hpp"
#include "experiments/harness/load/schedule.hpp"
#include "experiments/harness/measure/histogram.hpp"

namespace feedrate {

/// Number of requests that were due and had not ended, read every millisecond of an open load's timed phase.
struct Backlog {
  double begin = 0, end = 0, most = 0;  ///< requests: means of the first and the last tenth, and the maximum
  double per_second = 0;                ///< trend of the backlog
};
/// Computes the backlog from `readings`, evenly spaced over `seconds`.
Backlog backlog_of(std::span<const double> readings, double seconds);

/// Longest time for a closed load's first window, in multiples of the phase's length.
inline constexpr double kLongestRamp = 10;
/// Seconds for which due requests are still submitted after the end of an open load's phase.
inline constexpr double kGraceSeconds = 1;

/// Result of a timed phase of load. A request is the unit of load: a message, a read or a batch. Times are in ns.
struct LoadResult {
  std::uint64_t began_ns = 0;  ///< by the host's clock
  double ramp_seconds = 0;     ///< closed load: time until the first window had ended; not part of `seconds`
  bool ramped = true;          ///< the first window ended before its deadline
  double seconds = 0;          ///< time in which the `received` requests ended
  std::uint64_t received = 0;  ///< requests that ended in that time, checked
  Histogram latency;           ///< time from a request's submission (open load: from its due time) to its end
  // Open load.
  Histogram service;                          ///< time until a request ended, from submission
  Histogram without_own_lag;                  ///< `latency` minus the generator's own lag
  Histogram send_lag;                         ///< delay from a request's due time to its submission
  Histogram own_lag;                          ///< the part of `send_lag` that the generator itself caused
  std::map<unsigned, Histogram> by_priority;  ///< `latency` of each class, if the schedule has several
  std::uint64_t due = 0;                      ///< number of requests in the schedule
  std::uint64_t unsent = 0;                   ///< number of requests that were never submitted
  double blocked_share = 0;                   ///< share of the generator's time in which there was no room
  double granularity_ns = 0;  ///< mean time between two checks for due requests; 0: some request was always due
  Backlog backlog;
};

/// Adds the results of another thread, which offered load at the same time. Rates are added, even if the threads
/// measured over different times. Priority
/// classes are not merged.
void merge(LoadResult& all, const LoadResult& more);

/// Target of a load: reads from a drive, batches of a data loader, requests to a server. Used by one thread.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  /// Starts request `number`, counted from 0 in each phase. The request owns `slot`, which is below the window, until
  /// it ends; the slot can select a buffer, for example. Returns false if there is no room now. Never blocks. Throws
  /// Failure.
  virtual bool submit(std::size_t slot, std::uint64_t number) = 0;
  /// Writes the slots of requests that have ended and been checked to `ended`; returns their number. Never blocks.
  /// Throws Failure.
  virtual std::size_t poll(std::span<std::size_t> ended) = 0;
};

/// Parameters of one phase of load.
struct Offering {
  double seconds = 0.5;
  std::size_t window = 1;              ///< maximum number of requests in flight
  const Schedule* schedule = nullptr;  ///< for open load; the schedule's `seconds` then replace `seconds`
  double watchdog_seconds = 10;        ///< Failure if no request in flight ends for this long
  std::function<bool()> interrupted = [] { return false; };
};

/// No request in flight has ended for `watchdog_seconds`.
struct NoProgress : Failure {
  using Failure::Failure;
};

/// Offers load from one thread until the phase is over and all submitted requests have ended. Closed load keeps the
/// window full; requests that end before the first window has ended do not count. Open load submits each request when
/// it is due, or as soon afterwards as there is room; its time is measured from its due time.
LoadResult offer(Endpoint&, const Offering&);

}  // namespace feedrate
