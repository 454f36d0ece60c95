#pragma once
#include <cstdint>
#include <string>

namespace feedrate {

/// What becomes of tasks whose worker died or whose workload failed, and of results that nobody collects.
struct DeliverySettings {
  unsigned attempts = 3;                ///< a task is delivered so often at most; then it is a dead letter
  double lease_seconds = 5;             ///< a worker that says nothing for so long is taken for dead
  double retry_seconds = 1;             ///< until the second attempt; doubles with each further one
  std::uint64_t dead_letters = 10'000;  ///< that are kept; the oldest go first
  double results_seconds = 0;           ///< that uncollected results are kept; 0: for ever
};

/// Which Redis to use, and how.
struct RedisSettings {
  std::string url;  ///< redis://[user[:password]@]host[:port][/db] or unix://[user:password@]/path
  std::string prefix = "feedrate";  ///< of the keys that workers in other processes serve
  std::string own_prefix = {};      ///< of the keys of this run: `prefix` and a hash tag with the run's id
  DeliverySettings delivery = {};
  bool shared = false;  ///< others use the server, too: what this run makes there must expire
};

}  // namespace feedrate
