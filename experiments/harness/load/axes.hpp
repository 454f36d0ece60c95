#pragma once
#include "common/axes.hpp"
#include "experiments/harness/load/schedule.hpp"

namespace feedrate {

/// Axes of a LoadShape without sizes and priorities, for experiments whose requests are all alike.
const Axes<LoadShape>& load_axes();

}  // namespace feedrate
