#pragma once
#include <string>

#include "experiments/harness/load/schedule.hpp"

namespace feedrate {

struct TraceFile {
  Schedule schedule;
  std::string workload;  ///< named by the trace, or ""
};

/// Reads recorded arrivals and shifts their times so that the first is 0. Formats:
///   JSONL  { "time": seconds, "payload": bytes, "priority": 0…7, "workload": name } per line; only the time is
///   required CSV    a header line with these names, then values
/// Times are in seconds and ascending. Either all lines have a payload or none has; the same applies to priorities. A
/// point has one workload, so a trace that names a workload must name the same one in all lines. Throws BadInput with
/// the file, the line and the allowed form.
TraceFile read_trace(const std::string& file);

}  // namespace feedrate
