#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "common/redis/script.hpp"
#include "libraries/tensors/store/daemon.hpp"

namespace feedrate::tensors {

struct MirrorOptions {
  std::string url;                        ///< URL of the Redis server
  std::string prefix;                     ///< prefix of the keys, used by one daemon only
  std::string list = "tensor_lifecycle";  ///< list from which requests are taken; empty: none
};

/// A store's mirror in Redis, which shows programs in any language what the store holds: a Hash `PREFIX:tensor:NAME`
/// for each tensor, the Set `PREFIX:tensors` of their names and the Hash `PREFIX:daemon`. The daemon's table is
/// authoritative: after an outage the server receives the complete table again, and entries of a former daemon are
/// removed. Nothing waits for the server.
class Mirror {
 public:
  /// Observes the daemon. Throws BadInput naming `--redis` if the server cannot be reached, and `--prefix` if another
  /// running store has the prefix.
  Mirror(MirrorOptions options, Daemon& daemon);
  /// Removes this daemon's entries, if the server answers. The daemon must no longer be running.
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  struct Claim {
    std::string owner;  ///< text that describes the store that has the prefix; empty: this store
    bool kept = false;  ///< whether this store had the prefix before
  };
  /// Claims the prefix, or renews the claim.
  Claim claim(redis::Connection&) const;
  /// Renews the claim once a second. False if the server may have lost earlier writes. Throws Failure if another store
  /// has the prefix.
  bool renew(redis::Connection&);
  void note(Table::Change, const Description&);
  void run(const std::stop_token&);
  void serve(redis::Connection&, const std::stop_token&);
  /// Writes the complete table. False if it did not finish.
  bool write_all(redis::Connection&, const std::stop_token&);
  void put(redis::Connection&, const Description&) const;
  void drop(redis::Connection&, const std::string& name) const;
  std::string key(const std::string& what) const { return options_.prefix + ":" + what; }

  MirrorOptions options_;
  Daemon& daemon_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, std::optional<Description>> pending_;  // protected by mutex_; empty value: the name is gone
  bool connected_ = false;                                     // protected by mutex_; if false, nothing is recorded
  bool first_ = true;
  Clock::time_point renewed_ = {};  // this and the following members belong to the thread
  unsigned times_made_ = 0;         // number of connections made so far
  std::optional<redis::Script> script_;
  std::jthread thread_;
};

/// Takes requests from a Redis list and answers each on the list given in the request. Requests are not authenticated:
/// every client that may write to the server may send them.
class ListControl {
 public:
  ListControl(MirrorOptions options, Daemon& daemon);

 private:
  void run(const std::stop_token&);
  void serve(redis::Connection&, const std::vector<std::string>& requests, const std::stop_token&) const;

  MirrorOptions options_;
  Daemon& daemon_;
  std::jthread thread_;
};

}  // namespace feedrate::tensors
