#pragma once
#include <cstdint>

#include "variants/feeding/point.hpp"

/// Which share of the messages is timed: every message while that costs a producer less than 2 % of its time, else
/// every 2^k-th.
namespace feedrate {

/// From publication to result.
unsigned timing_sampling(double messages_per_second, const Point&);
/// For the times of stages over `seconds`: these samples must also fit in memory.
unsigned stages_sampling(double messages_per_second, double seconds, const Point&);
/// The finest sampling for a resident kernel. It can't be told later which messages are sampled, and marks are writes
/// over the bus, so at high rates it marks some tens of thousands a second. `due_per_second`: 0 for a closed load.
std::uint64_t finest_sampling(double due_per_second, const Point&);

}  // namespace feedrate
