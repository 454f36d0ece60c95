#pragma once
#include <memory>

#include "common/redis/private_server.hpp"
#include "common/redis/settings.hpp"
#include "common/service.hpp"

namespace feedrate::redis {

/// The service "redis": a Redis server or cluster.
class RedisService final : public Service {
 public:
  /// Without a URL, uses a private server. `for_a_worker`: whether the data on the server is for clients and follows
  /// the delivery settings; otherwise it belongs to this run.
  explicit RedisService(RedisSettings asked, bool for_a_worker = false);
  void start(const ServiceNeeds& = {}) override;
  void connect() override;
  void stop() override;
  bool is_external() const override { return given_; }
  std::string address() const override { return settings_.url; }
  std::string own_prefix() const override { return settings_.own_prefix; }
  std::map<std::string, std::string> state() override;
  /// Of the server that has this run's keys.
  std::optional<double> cpu_seconds() override;
  /// Measures round-trip time, elements per second and bytes per second, using keys of this run.
  void add_limits(LimitList&) override;

  /// Valid once the service is started.
  const RedisSettings& settings() const { return settings_; }

 private:
  RedisSettings settings_;
  bool given_;
  std::unique_ptr<PrivateServer> private_;
};

/// The settings of a RedisService. Throws Failure if `service` is of another type.
const RedisSettings& settings_of(const Service*);

}  // namespace feedrate::redis
