#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "common/socket_folder.hpp"

namespace feedrate::redis {

/// A private redis-server on a Unix socket in a new temporary directory, without persistence or TCP. The destructor
/// stops it and removes the directory. The kernel kills the server if this process dies.
class PrivateServer {
 public:
  /// Starts the server. Throws BadInput if there is no redis-server or no folder for its socket, and Failure if the
  /// server fails to start.
  PrivateServer();
  ~PrivateServer();
  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;

  /// Returns false once the server has ended or is ending for any reason.
  bool serves() { return alive() && listens(socket()); }
  std::string url() const { return "unix://" + socket().string(); }

 private:
  std::filesystem::path socket() const { return folder_ / "redis.sock"; }
  bool alive();
  void stop();
  SocketFolder folder_;
  pid_t child_ = -1;
};

/// Returns $FEEDRATE_REDIS_SERVER or the path of redis-server on the PATH; empty if there is none.
std::string find_redis_server();

}  // namespace feedrate::redis
