#pragma once
#include <string>
#include <vector>

namespace feedrate {

/// Runs this executable with the words `child`, its own name the first, and starts it again, with
/// longer and longer pauses, whenever it ends by a signal or with code 1. Ends when the child ends with any other code,
/// or after SIGINT or SIGTERM, which it hands on; returns the child's exit code, or 0 where none ran just then.
int supervise(const std::vector<std::string>& child);

}  // namespace feedrate
