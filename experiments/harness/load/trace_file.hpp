#pragma once
#include <string>

#include "experiments/harness/load/schedule.hpp"

namespace feedrate {

struct TraceFile {
  Schedule schedule;
  std::string workload;  ///< that it names, or ""
};

/// Reads recorded arrivals, times shifted so that the first is 0:
///   JSONL  { "time": seconds, "payload": bytes, "priority": 0…7, "workload": name } a line, all but the time optional
///   CSV    a head line with these names, then values
/// Times are seconds, ascending. All lines give a payload, or none; priorities likewise. A point has one workload, so a
/// trace that names one must name the same in all lines. Throws BadInput with the file, the line and what is allowed.
TraceFile read_trace(const std::string& file);

}  // namespace feedrate
