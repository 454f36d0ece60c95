#pragma once
#include <string>
#include <utility>
#include <vector>

#include "experiments/harness/measure/experiment.hpp"

namespace feedrate {

/// Lines that show a row of `feeding` in a terminal.
std::vector<std::pair<std::string, std::string>> feeding_lines(const ExperimentInfo&, const Json& row);

}  // namespace feedrate
