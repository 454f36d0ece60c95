#pragma once
#include <optional>
#include <string>
#include <utility>

#include "common/redis/connection.hpp"

namespace feedrate::redis {

/// Hears messages on one channel, over a connection of its own.
class Subscription {
 public:
  /// Returns when the server has said that it will hear. Throws ServerFailure.
  Subscription(std::string url, std::string channel) : url_(std::move(url)), channel_(std::move(channel)) {
    subscribe();
  }
  /// Whether any message came since the last question, or may have been lost with a connection that was closed: then
  /// it subscribes again. Throws ServerFailure when the server is gone.
  bool came() {
    bool any = false;
    try {
      while (connection_->try_receive()) any = true;
    } catch (const ServerFailure& failure) {
      if (!failure.code.empty()) throw;
      subscribe();
      any = true;
    }
    return any;
  }

 private:
  /// What closes the connection may do so before the server has answered.
  void subscribe() {
    constexpr int kAttempts = 3;
    for (int attempt = 1;; ++attempt) {
      try {
        Connection made(url_);
        made.command({"SUBSCRIBE", channel_});
        connection_ = std::move(made);
        return;
      } catch (const ServerFailure& failure) {
        if (!failure.code.empty() || attempt == kAttempts) throw;
      }
    }
  }

  std::string url_, channel_;
  std::optional<Connection> connection_;
};

}  // namespace feedrate::redis
