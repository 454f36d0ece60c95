#pragma once
#include <vector>

#include "experiments/feeding/load.hpp"
#include "experiments/harness/measure/settings.hpp"

namespace feedrate {

/// Rate of the load generator alone, in messages per second: the yardstick for a rate.
///
/// It is the median of `kDriverRuns` short runs of the queue `null`, made once for all points with the same memory
/// footprint (`yardstick_of`), regardless of their rows. Measuring the limit again only when a rate is near it would
/// bias it in favour of the rate. A yardstick touches as much memory as the points do: it writes the same payload bytes
/// per message and compares as many result bytes in as many slots. For large payloads, which host memory bounds, it is
/// therefore bound in the same way.
struct DriverLimit {
  double median = 0, least = 0, greatest = 0;  ///< over the runs
};
inline constexpr unsigned kDriverRuns = 5;

/// Summary of the rates of these runs.
DriverLimit driver_limit_of(std::vector<double> rates);
/// Whether a rate says more about the load generator than about the queue.
bool driver_bound(double rate, const DriverLimit&);
/// The point at which the load generator is measured for `point`. Points with equal yardsticks share one limit.
Point yardstick_of(Point point, Device&);
/// Throws Failure.
DriverLimit measure_driver(const Point& yardstick, const Workload&, const Payloads&, Device&, const RunSettings&);

}  // namespace feedrate
