#include "experiments/feeding/arrivals.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/harness/load/mix.hpp"
#include "experiments/harness/load/schedule.hpp"

namespace feedrate {

std::string why_unsupported_load(Point& point, const Workload& workload) {
  if (auto reason = why_invalid_shape(point); !reason.empty() || !is_open(point)) return reason;
  const bool traced = point.arrivals == "trace";
  std::vector<std::size_t> sizes;
  if (traced) {
    const TraceFile trace = read_trace(point.trace_file);
    if (!trace.workload.empty() && trace.workload != point.workload) {
      return fmt::format("the trace is of workload {}, but the point has workload {}", trace.workload, point.workload);
    }
    sizes.assign(trace.schedule.payloads.begin(), trace.schedule.payloads.end());
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  }
  if (sizes.empty() && point.payload_mix != kNoMix)
    sizes = parse_payload_mix(point.payload_mix, point.payload).values();
  for (const std::size_t size : sizes) {
    if (auto reason = workload.why_unsupported(size); !reason.empty()) {
      return fmt::format("{}: invalid payload '{}': {}", traced ? "--trace-file" : "--payload-mix", size, reason);
    }
    point.payload = std::max(point.payload, size);
  }
  return "";
}

}  // namespace feedrate
