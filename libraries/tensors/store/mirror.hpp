#pragma once
#include <chrono>
#include <condition_variable>
#include <future>
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
  std::string url;                        ///< of the Redis server
  std::string prefix;                     ///< of the keys; of one daemon alone
  std::string list = "tensor_lifecycle";  ///< where requests come; empty: none are taken
};

/// A store's mirror in Redis, so that programs in any language see what there is: a Hash `PREFIX:tensor:NAME` for each
/// tensor, the Set `PREFIX:tensors` of their names and the Hash `PREFIX:daemon`. The daemon's table is the truth: a
/// server that was away is given all of it again, and what a former daemon left there is removed. Nothing waits for the
/// server.
class Mirror {
 public:
  /// Observes the daemon. Throws BadInput naming `--redis` where the server can't be reached, and `--prefix` where
  /// another store that lives has it.
  Mirror(MirrorOptions options, Daemon& daemon);
  /// Removes what is there of this daemon, where the server answers. The daemon must not run any more.
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  struct Claim {
    std::string owner;  ///< what to say of the store that has the prefix; empty: this one
    bool kept = false;  ///< it was this one's before
  };
  /// Claims the prefix, or renews the claim.
  Claim claim(redis::Connection&) const;
  /// Renews the claim once a second. False if the server may have lost what was written there. Throws Failure if another
  /// store has the prefix.
  bool renew(redis::Connection&);
  void note(Table::Change, const Description&);
  void run(const std::stop_token&);
  void serve(redis::Connection&, const std::stop_token&);
  /// False if it came to no end.
  bool write_all(redis::Connection&, const std::stop_token&);
  void put(redis::Connection&, const Description&) const;
  void drop(redis::Connection&, const std::string& name) const;
  std::string key(const std::string& what) const { return options_.prefix + ":" + what; }

  MirrorOptions options_;
  Daemon& daemon_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, std::optional<Description>> pending_;  // by mutex_; none: the name is gone
  bool connected_ = false;                                     // by mutex_; else nothing need be pending
  bool first_ = true;
  Clock::time_point renewed_ = {};  // these are the thread's
  unsigned times_made_ = 0;         // of the connection
  std::optional<redis::Script> script_;
  std::jthread thread_;
};

/// Takes requests from a Redis list and answers them on the lists that they name. They carry no authority of their own:
/// who may write to the server may ask.
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
