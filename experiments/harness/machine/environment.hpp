#pragma once
#include <string>

#include "common/device/device.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// A row's `environment` without its services: host, CPU, GPU, versions, clocks, link, revision, command line.
Json environment_of(const Device&, const std::string& command);

/// The text that `--version` prints.
std::string version_text();

}  // namespace feedrate
