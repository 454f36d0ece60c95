#pragma once
#include <cstdint>
#include <string>

namespace feedrate {

/// Handling of tasks whose worker died or whose workload failed, and of uncollected results.
struct DeliverySettings {
  unsigned attempts = 3;                ///< maximum deliveries of a task; then it becomes a dead letter
  double lease_seconds = 5;             ///< lease timeout
  double retry_seconds = 1;             ///< delay before the second attempt; doubles with each further attempt
  std::uint64_t dead_letters = 10'000;  ///< maximum number kept; the oldest are removed first
  double results_seconds = 0;           ///< lifetime of uncollected results; 0: unlimited
};

/// Address and use of a Redis server.
struct RedisSettings {
  std::string url;                  ///< redis://[user[:password]@]host[:port][/db] or unix://[user:password@]/path
  std::string prefix = "feedrate";  ///< prefix of keys served by workers in other processes
  std::string own_prefix = {};      ///< prefix of this run's keys: `prefix` and a hash tag with the run's id
  DeliverySettings delivery = {};
  bool shared = false;  ///< the server has other users, so all data of this run must expire
};

}  // namespace feedrate
