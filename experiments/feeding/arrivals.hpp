#pragma once
#include <string>

#include "experiments/harness/load/schedule.hpp"
#include "kernels/workload.hpp"
#include "variants/feeding/point.hpp"

namespace feedrate {

inline bool is_open(const Point& point) { return point.arrivals != "closed"; }

inline LoadShape shape_of(const Point& point) {
  return {point.arrivals,   point.rate,        point.burst_us,     point.pause_us,
          point.trace_file, point.payload_mix, point.priority_mix, point.payload};
}

/// Why a point's load can't be; empty when it can. Raises `payload` to the largest of the mix or the trace.
std::string refuse_load(Point&, const Workload&);

}  // namespace feedrate
