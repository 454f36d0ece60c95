#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/redis/connection.hpp"
#include "common/redis/settings.hpp"

namespace feedrate::redis {

/// How long a key of ours outlives the process that should have removed it, in milliseconds, as Redis reads it.
inline constexpr auto kLifetimeMs = "60000";

/// A name that no other run has: `prefix` and, as Redis Cluster's hash tag, an id, so that all keys of a run lie in one
/// slot.
std::string prefix_of_run(const std::string& prefix);

/// Whether the keys are this run's alone, or lie among those that other processes use.
enum class Keys { of_this_run, among_others };

/// Keys that one queue uses on a server. Nothing else is ever removed there. On a server that others use the keys also
/// expire: who fills a key that vanishes when it is emptied must say so with each filling (`expire`), the rest is
/// `keep`'s.
class OwnKeys {
 public:
  /// Throws Failure when one of the keys exists and is not ours, before anything is changed. Keys of this run that an
  /// earlier queue could not remove are removed.
  OwnKeys(const RedisSettings&, std::vector<std::string> keys, Keys);
  /// Removes the keys, if the server still answers.
  ~OwnKeys();
  OwnKeys(const OwnKeys&) = delete;
  OwnKeys& operator=(const OwnKeys&) = delete;

  /// Puts off their expiry, when it is time for that. Never blocks; throws Failure when the server is gone.
  void keep();

 private:
  void claim();
  void remove(const std::vector<std::string>& keys);

  Connection connection_;
  bool shared_;
  std::vector<std::string> keys_;
  std::string owner_key_;  // says whose the keys are, before there are any; empty among others
  std::uint64_t kept_ns_ = 0;
};

/// Appends what makes `key` expire, where that is asked for.
inline void expire(Connection& connection, std::string_view key, bool shared) {
  if (shared) connection.append_unanswered({"PEXPIRE", key, kLifetimeMs});
}

}  // namespace feedrate::redis
