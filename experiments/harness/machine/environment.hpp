#pragma once
#include <string>

#include "common/device/device.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// A row's `environment`: host, CPU, GPU, versions, clocks, link, Redis, revision, command line. `redis_url` may be
/// empty; a server that can't be asked is left out.
Json environment_of(const Device&, const std::string& redis_url, bool private_redis, const std::string& command);

/// Versions of this program, as `--version` prints them.
std::string version_text();

}  // namespace feedrate
