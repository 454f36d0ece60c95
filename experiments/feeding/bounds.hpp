#pragma once
#include "experiments/feeding/axes.hpp"
#include "variants/queue.hpp"

namespace feedrate {

/// A row's `bound`: the floors that bind this point, and the measured figures as ratios to them. What follows from
/// floors that were not measured is left out.
Json bounds_of(const Point&, const Json& floors, const Choices&, double messages_per_second, double p50_ns);

}  // namespace feedrate
