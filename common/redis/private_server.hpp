#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "common/socket_folder.hpp"

namespace feedrate::redis {

/// A redis-server of our own on a unix socket in a fresh temporary directory: without persistence, without TCP, ended
/// and removed with this object. The kernel ends it too if this process dies.
class PrivateServer {
 public:
  /// Throws BadInput when there is no redis-server to start, or no folder for its socket; Failure when it does not come
  /// up.
  PrivateServer();
  ~PrivateServer();
  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;

  /// False once the server has ended, for whatever reason.
  bool alive();
  std::string url() const { return "unix://" + socket().string(); }

 private:
  std::filesystem::path socket() const { return folder_ / "redis.sock"; }
  void stop();
  SocketFolder folder_;
  pid_t child_ = -1;
};

/// $FEEDRATE_REDIS_SERVER, or redis-server on the PATH; empty when there is none.
std::string find_redis_server();

}  // namespace feedrate::redis
