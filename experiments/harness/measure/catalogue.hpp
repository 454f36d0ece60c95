#pragma once
#include "experiments/harness/json.hpp"

namespace feedrate {

/// Catalogue of this executable: experiments with their figures and axes, members, limits, units. `feedrate list
/// --json` prints it, and each run stores it next to its rows, where the analysis reads it.
Json catalogue();

}  // namespace feedrate
