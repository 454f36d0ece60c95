#pragma once
#include <optional>
#include <string>
#include <utility>

#include "common/redis/connection.hpp"

namespace feedrate::redis {

/// Receives messages on one channel, over a separate connection.
class Subscription {
 public:
  /// Returns once the server has confirmed the subscription. Throws ServerFailure.
  Subscription(std::string url, std::string channel) : url_(std::move(url)), channel_(std::move(channel)) {
    subscribe();
  }
  /// Whether any message has arrived since the last call, or may have been lost because the connection was closed; in
  /// the latter case, subscribes again. Throws ServerFailure if the server is gone.
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
  /// Subscribes; tries again if the connection is closed before the server has replied.
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
