#pragma once
#include <map>
#include <memory>
#include <string>

#include "common/device/device.hpp"
#include "experiments/harness/measure/experiment.hpp"
#include "kernels/workload.hpp"
#include "variants/feeding/point.hpp"

namespace feedrate {

/// The axes of `feeding` itself, without its members' axes.
const Axes<Point>& shared_axes();
/// All axes of `feeding`, including its members' axes.
AxisTable feeding_axes();

Point point_of(const Values&);
Values values_of(const Point&);

/// A point as it is measured on this machine. Axes that do not apply are 0 or "none", or absent if they belong to a
/// member, so that equal work has equal parameters.
struct Resolved {
  Point point;
  std::string impossible;                     ///< reason why the point cannot be measured; empty if it can
  std::map<std::string, std::string> unused;  ///< shared axes that do not apply, with the condition under which they do
};
Resolved resolve(Point, Device&);
/// Reason why a point's load is impossible; empty if it is possible. Raises `payload` to the largest payload in the mix
/// or the trace.
std::string why_unsupported_load(Point&, const Workload&);

std::unique_ptr<Workload> make_workload(const Point&);

/// Name of the variant, for example "gpu_ring" or "redis_list + pinned".
std::string variant_of(const Point&);

}  // namespace feedrate
