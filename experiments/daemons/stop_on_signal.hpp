#pragma once
#include <chrono>
#include <stop_token>
#include <thread>

#include "experiments/harness/measure/session.hpp"

namespace feedrate {

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
