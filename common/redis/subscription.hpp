#pragma once
#include <string>
#include <utility>

#include "common/redis/connection.hpp"

namespace feedrate::redis {

/// Hears messages on one channel, over a connection of its own.
class Subscription {
 public:
  /// Returns when the server has said that it will hear. Throws ServerFailure.
  Subscription(const std::string& url, std::string channel)
      : url_(url), channel_(std::move(channel)), connection_(url) {
    subscribe();
  }
  /// Whether any message came since the last question, or may have been lost with a connection that was closed: then
  /// it subscribes again. Throws ServerFailure when the server is gone.
  bool came() {
    bool any = false;
    try {
      while (connection_.try_receive()) any = true;
    } catch (const ServerFailure& failure) {
      if (!failure.code.empty()) throw;
      subscribe_anew();
      any = true;
    }
    return any;
  }

 private:
  void subscribe() { connection_.command({"SUBSCRIBE", channel_}); }
  /// What closed the connection may close the next one before the server has answered.
  void subscribe_anew() {
    constexpr int kAttempts = 3;
    for (int attempt = 1;; ++attempt) {
      try {
        connection_ = Connection(url_);
        return subscribe();
      } catch (const ServerFailure& failure) {
        if (!failure.code.empty() || attempt == kAttempts) throw;
      }
    }
  }

  std::string url_, channel_;
  Connection connection_;
};

}  // namespace feedrate::redis
