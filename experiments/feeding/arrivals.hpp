#pragma once
#include <string>

#include "experiments/harness/load/schedule.hpp"
#include "kernels/workload.hpp"
#include "variants/feeding/point.hpp"

namespace feedrate {

/// Why a point's load can't be; empty when it can. Raises `payload` to the largest of the mix or the trace.
std::string refuse_load(Point&, const Workload&);

}  // namespace feedrate
