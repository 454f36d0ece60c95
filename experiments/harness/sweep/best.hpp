#pragma once
#include <memory>

#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

/// The experiment's own summary, or else the best variant of each headline figure, and the runner-up.
std::unique_ptr<Summary> summary_of(const Kind&);

}  // namespace feedrate
