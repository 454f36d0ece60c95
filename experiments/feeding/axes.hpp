#pragma once
#include <map>
#include <memory>
#include <string>

#include "common/device/device.hpp"
#include "experiments/harness/measure/experiment.hpp"
#include "kernels/workload.hpp"
#include "variants/feeding/point.hpp"

namespace feedrate {

/// The axes of `feeding` itself; members add theirs.
const Axes<Point>& shared_axes();
/// All of them.
AxisTable feeding_axes();

Point point_of(const Values&);
Values values_of(const Point&);

/// A point as it is measured on this machine: axes that do not apply are 0 or "none", or, of members, absent, so that
/// equal work has equal parameters.
struct Resolved {
  Point point;
  std::string impossible;                     ///< why it can't be measured; empty when it can
  std::map<std::string, std::string> unused;  ///< shared axes that do not apply, and what is allowed instead
};
Resolved resolve(Point, Device&);

std::unique_ptr<Workload> make_workload(const Point&);

/// "gpu_ring", or "redis_list + pinned".
std::string variant_of(const Point&);

}  // namespace feedrate
