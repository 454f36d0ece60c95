#pragma once
#include <memory>

#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

/// The experiment's own summary; by default, the best variant and the runner-up for each headline figure.
std::unique_ptr<Summary> summary_of(const ExperimentInfo&);

}  // namespace feedrate
