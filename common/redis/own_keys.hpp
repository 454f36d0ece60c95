#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/redis/connection.hpp"
#include "common/redis/settings.hpp"

namespace feedrate::redis {

/// How long a run's keys outlive a process that did not remove them, in milliseconds, as a Redis argument.
inline constexpr auto kLifetimeMs = "60000";

/// Returns a unique name for a run: `prefix` and an id. The id is a hash tag of Redis Cluster, so that all keys of a
/// run are in one slot.
std::string prefix_of_run(const std::string& prefix);

/// Whether the keys belong to this run alone, or are among keys that other processes use.
enum class Keys { of_this_run, among_others };

/// The keys that one queue uses on a server. No other keys are ever removed. On a shared server the keys also expire.
/// Redis deletes some keys when they become empty; code that fills such a key must call `expire` each time. `keep`
/// handles all other keys.
class OwnKeys {
 public:
  /// Throws Failure, before changing anything, if one of the keys exists and does not belong to this run. Removes keys
  /// of this run that an earlier queue could not remove.
  OwnKeys(const RedisSettings&, std::vector<std::string> keys, Keys);
  /// Removes the keys if the server still replies.
  ~OwnKeys();
  OwnKeys(const OwnKeys&) = delete;
  OwnKeys& operator=(const OwnKeys&) = delete;

  /// Extends the expiry of the keys when it is due. Never blocks; throws Failure if the server is gone.
  void keep();

 private:
  void claim();
  void remove(const std::vector<std::string>& keys);

  Connection connection_;
  bool shared_;
  std::vector<std::string> keys_;
  std::string owner_key_;  // marks the owner before any key exists; empty for Keys::among_others
  std::uint64_t kept_ns_ = 0;
};

/// Appends a command that makes `key` expire, if `shared`.
inline void expire(Connection& connection, std::string_view key, bool shared) {
  if (shared) connection.append_unanswered({"PEXPIRE", key, kLifetimeMs});
}

}  // namespace feedrate::redis
