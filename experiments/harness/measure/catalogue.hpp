#pragma once
#include "experiments/harness/json.hpp"

namespace feedrate {

/// What there is: experiments with their figures and axes, members, limits, units. `feedrate list --json` prints it,
/// and each run keeps it beside its rows, where the analysis reads it.
Json catalogue();

}  // namespace feedrate
