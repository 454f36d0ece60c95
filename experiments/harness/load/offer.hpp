#pragma once
#include <functional>

#include "experiments/harness/load/endpoint.hpp"
#include "experiments/harness/load/result.hpp"
#include "experiments/harness/load/schedule.hpp"

namespace feedrate {

/// Parameters of one phase of load.
struct Offering {
  double seconds = 0.5;
  std::size_t window = 1;              ///< maximum number of requests in flight
  const Schedule* schedule = nullptr;  ///< for open load; its `seconds` then replace those above
  double watchdog_seconds = 10;        ///< Failure if no request in flight ends for this long
  std::function<bool()> interrupted = [] { return false; };
};

/// Offers load from one thread until the phase is over and all submitted requests have ended. Closed load keeps the
/// window full; requests that end before the first window has ended do not count. Open load submits each request when
/// it is due, or as soon afterwards as there is room; its time is measured from its due time.
LoadResult offer(Endpoint&, const Offering&);

}  // namespace feedrate
