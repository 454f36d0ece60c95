#pragma once
#include <cstdint>

#include "variants/feeding/point.hpp"

/// Sampling intervals for timing: every message if this costs a producer less than 2 % of its time, otherwise every
/// 2^k-th message.
namespace feedrate {

/// Interval for latencies.
unsigned timing_sampling(double messages_per_second, const Point&);
/// Interval for stage times over `seconds`; these samples must also fit in memory.
unsigned stages_sampling(double messages_per_second, double seconds, const Point&);
/// Finest sampling interval for a resident kernel. The set of sampled messages cannot be changed while the kernel runs,
/// and each record is a write over the bus, so at high rates it records only tens of thousands of messages per second.
/// `due_per_second`: 0 for a closed load.
std::uint64_t finest_sampling(double due_per_second, const Point&);

}  // namespace feedrate
