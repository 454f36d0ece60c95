#pragma once
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

#include "common/redis/connection.hpp"

namespace feedrate::tensors {

/// Calls `serve` with a connection to the server. If the connection breaks, calls it again with a new one, after
/// increasing pauses, until a stop is requested. `who` names the caller in the log.
template <class Serve>
void with_reconnects(const char* who, const std::string& url, const std::stop_token& stop, const Serve& serve) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kFirst{0.05}, kLongest{2};
  std::mutex mutex;
  std::condition_variable_any ended;
  Seconds pause = kFirst;
  while (!stop.stop_requested()) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      redis::Connection connection(url);
      serve(connection);
    } catch (const Failure& failure) {
      if (stop.stop_requested()) return;
      if (std::chrono::steady_clock::now() - begin > kLongest) pause = kFirst;  // the connection worked for a while
      spdlog::warn("{}: {}; retrying in {:.2g} s", who, failure.what(), pause.count());
      std::unique_lock lock(mutex);
      ended.wait_for(lock, stop, pause, [] { return false; });
      pause = std::min(2 * pause, kLongest);
    }
  }
}

}  // namespace feedrate::tensors
