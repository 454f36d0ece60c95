#pragma once
#include <cstdint>

#include "variants/point.hpp"

/// Which share of the messages is timed: every message while that costs a producer less than 2 % of its time, else
/// every 2^k-th.
namespace feedrate {

/// From publication to result.
unsigned timing_sampling(double messages_per_second, const Point&);
/// Stage by stage, for so long: they must find room, too.
unsigned stages_sampling(double messages_per_second, double seconds, const Point&);
/// The most that a kernel marks that stays: it can't be told later which messages are sampled, and each one's marks are
/// writes over the bus. So of many it marks some tens of thousands a second. `due_per_second`: 0 for a closed load.
std::uint64_t finest_sampling(double due_per_second, const Point&);

}  // namespace feedrate
