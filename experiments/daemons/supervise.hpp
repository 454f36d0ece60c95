#pragma once
#include <string>
#include <vector>

namespace feedrate {

/// Runs this executable with the arguments `child` (the first is its name) and restarts it, with increasing pauses,
/// whenever it ends by a signal or with code 1. Returns when the child ends with any other code, or after SIGINT or
/// SIGTERM, which it forwards. The result is the child's exit code, or 0 if no child was running.
int supervise(const std::vector<std::string>& child);

}  // namespace feedrate
