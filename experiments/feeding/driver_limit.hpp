#pragma once
#include <vector>

#include "experiments/feeding/load.hpp"
#include "experiments/harness/measure/settings.hpp"

namespace feedrate {

/// What the load generator alone reaches, in messages a second: the yardstick that a rate is judged by.
///
/// It is the median of `kDriverRuns` short runs of the queue `null`, made once for all points with the same memory
/// footprint (`yardstick_of`), whatever their rows say: a limit that is looked at again when a rate comes near it only
/// ever moves to where the rate is fine. A yardstick touches as much memory as the points do: the same payload bytes
/// are written for each message, as many result bytes are compared, in as many slots. Large payloads are bound by the
/// host's memory, and then so is the yardstick.
struct DriverLimit {
  double median = 0, least = 0, greatest = 0;  ///< of the runs
};
inline constexpr unsigned kDriverRuns = 5;

/// Of the rates of these runs.
DriverLimit driver_limit_of(std::vector<double> rates);
/// Whether a rate says more about the load generator than about the queue.
bool driver_bound(double rate, const DriverLimit&);
/// The point at which the load generator is measured for `point`. Points with equal ones have one limit.
Point yardstick_of(Point point, Device&);
/// Throws Failure.
DriverLimit measure_driver(const Point& yardstick, const Workload&, const Payloads&, Device&, const RunSettings&);

}  // namespace feedrate
