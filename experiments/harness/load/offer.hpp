#pragma once
#include <functional>

#include "experiments/harness/load/endpoint.hpp"
#include "experiments/harness/load/result.hpp"
#include "experiments/harness/load/schedule.hpp"

namespace feedrate {

/// How one phase of load is offered to an endpoint.
struct Offering {
  double seconds = 0.5;
  std::size_t window = 1;              ///< most requests under way
  const Schedule* schedule = nullptr;  ///< open load, if there is one; its own seconds count then
  double watchdog_seconds = 10;        ///< without any end of a request, while some are under way: Failure
  std::function<bool()> interrupted = [] { return false; };
};

/// Offers load from one thread until the phase is over and all that was submitted has ended. Closed: the window is kept
/// full, and what ends while it first fills does not count. Open: each request is submitted when it is due, or as soon
/// after as there is room, and its time counts from when it was due.
LoadResult offer(Endpoint&, const Offering&);

}  // namespace feedrate
