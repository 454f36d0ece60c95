#pragma once
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "experiments/harness/measure/session.hpp"

namespace feedrate {

/// Runs this executable as a child with these arguments (the first is its name), but without `--supervise`. Restarts
/// it, with increasing pauses, whenever it is killed by a signal or exits with code 1. Returns when the child exits
/// with any other code, or after SIGINT or SIGTERM, which it forwards. The result is the child's exit code, or 0 if no
/// child was running.
int supervise(std::vector<std::string> arguments);

/// Writes each further log line as a JSON object with `time` (ISO 8601, UTC), `level`, `process` and `message`.
void log_as_json();

/// A stop token that SIGINT or SIGTERM triggers. Signal handlers may not request a stop, so a thread polls for the
/// signal.
class StopOnSignal {
 public:
  StopOnSignal() = default;
  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::jthread watcher_{[this](const std::stop_token& ended) {
    while (!ended.stop_requested() && !interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop_.request_stop();
  }};
};

}  // namespace feedrate
