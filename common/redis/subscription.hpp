#pragma once
#include <string>

#include "common/redis/connection.hpp"

namespace feedrate::redis {

/// Hears messages on one channel, over a connection of its own.
class Subscription {
 public:
  /// Returns when the server has said that it will hear. Throws ServerFailure.
  Subscription(const std::string& url, const std::string& channel) : connection_(url) {
    connection_.command({"SUBSCRIBE", channel});
  }
  /// Whether any message came since the last question. Never blocks; throws ServerFailure when the server is gone.
  bool came() {
    bool any = false;
    while (connection_.try_receive()) any = true;
    return any;
  }

 private:
  Connection connection_;
};

}  // namespace feedrate::redis
