#pragma once
#include <string>

#include "experiments/harness/load/schedule.hpp"
#include "kernels/workload.hpp"
#include "variants/feeding/point.hpp"

namespace feedrate {

/// Reason why a point's load is impossible; empty if it is possible. Raises `payload` to the largest payload in the mix
/// or the trace.
std::string why_unsupported_load(Point&, const Workload&);

}  // namespace feedrate
