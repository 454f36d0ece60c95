#include "common/redis/service.hpp"

#include <fmt/format.h>

#include "common/redis/cluster.hpp"
#include "common/redis/connection.hpp"
#include "common/redis/own_keys.hpp"
#include "common/redis/url.hpp"

namespace feedrate::redis {
namespace {

/// Options of the service and of workers.
struct Options {
  std::string redis;
  std::string prefix = RedisSettings{}.prefix;
  unsigned attempts = DeliverySettings{}.attempts;
  double lease = DeliverySettings{}.lease_seconds;
  double retry_after = DeliverySettings{}.retry_seconds;
  std::uint64_t dead_letters = DeliverySettings{}.dead_letters;
  double results_expire = 3600;
};

const Axes<Options>& server_options() {
  static const auto all =
      Axes<Options>()
          .raw(
              "redis", &Options::redis,
              "redis://[user:password@]host[:port][/db] (for a Redis Cluster, several servers: host:port,host:port) or "
              "unix:///path; without this option a private server is started")
          .raw("prefix", &Options::prefix,
               "prefix of all Redis keys: a worker uses PREFIX:tasks and PREFIX:results:<reply list>, a benchmark "
               "PREFIX:{bench-<id>}:…");
  return all;
}

const Axes<Options>& worker_options() {
  static const auto all =
      Axes<Options>()
          .number("attempts", &Options::attempts, {1, 255},
                  "maximum deliveries of a task; it then becomes a dead letter")
          .number("lease", &Options::lease, {0.1, 86400},
                  "lease timeout in seconds; a worker that has not renewed its lease for this long is presumed dead")
          .number("retry-after", &Options::retry_after, {0, 86400},
                  "seconds until a task's second attempt; doubles with each further attempt")
          .number("dead-letters", &Options::dead_letters, {0, double(std::uint64_t{1} << 40)},
                  "maximum number of dead letters; the oldest are removed first")
          .number("results-expire", &Options::results_expire, {0, 1e9},
                  "seconds after which uncollected results are removed; 0: never");
  return all;
}

std::unique_ptr<Service> make(const Values& values) {
  const Options server = server_options().of(values), worker = worker_options().of(values);
  RedisSettings settings{.url = server.redis, .prefix = server.prefix};
  const bool for_a_worker = values.contains(worker_options().list().front().name);
  if (for_a_worker) {
    settings.delivery = {worker.attempts, worker.lease, worker.retry_after, worker.dead_letters, worker.results_expire};
  }
  return std::make_unique<RedisService>(std::move(settings), for_a_worker);
}

const ServiceRegistration registered(
    "redis", {.description = "a Redis server or cluster; a private server is a redis-server on a Unix socket",
              .options = server_options().list(),
              .worker_options = worker_options().list(),
              .make = make,
              .unavailable =
                  [] {
                    return find_redis_server().empty() ? std::string("no redis-server on the PATH; give --redis URL")
                                                       : std::string();
                  },
              .threads = 5});  // one for commands, and four for its connections

}  // namespace

RedisService::RedisService(RedisSettings asked, bool for_a_worker)
    : settings_(std::move(asked)), given_(!settings_.url.empty()) {
  settings_.shared = given_ && !for_a_worker;
}

void RedisService::start(const ServiceNeeds&) {
  if (settings_.own_prefix.empty()) settings_.own_prefix = prefix_of_run(settings_.prefix);
  if (private_ && !private_->serves()) stop();  // the failed cell's reason already reports this
  if (!settings_.url.empty()) return;
  private_ = std::make_unique<PrivateServer>();
  settings_.url = private_->url();
}

void RedisService::connect() { const Connection probe(settings_.url); }

void RedisService::stop() {
  if (!private_) return;
  private_.reset();
  settings_.url.clear();
}

/// The settings that affect a server's cost or guarantees.
std::map<std::string, std::string> RedisService::state() {
  Connection connection(settings_.url);
  std::map<std::string, std::string> state{{"url", private_ ? "private unix socket" : without_password(settings_.url)}};
  const auto info = connection.command({"INFO", "server"});
  const std::string_view said = text(*info);
  constexpr std::string_view kKey = "redis_version:";
  if (const auto at = said.find(kKey); at != said.npos) {
    state["version"] = std::string(said.substr(at + kKey.size(), said.find('\r', at) - at - kKey.size()));
  }
  for (const char* name :
       {"save", "appendonly", "appendfsync", "io-threads", "io-threads-do-reads", "maxmemory", "maxmemory-policy",
        "list-max-listpack-size", "stream-node-max-entries", "stream-node-max-bytes"}) {
    try {
      const auto reply = connection.command({"CONFIG", "GET", name});
      if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
        state[fmt::format("config.{}", name)] = text(*reply->element[1]);
      }
    } catch (const Failure&) {  // a managed server may forbid CONFIG
      break;
    }
  }
  return state;
}

std::optional<double> RedisService::cpu_seconds() {
  try {
    Connection connection(Cluster(settings_.url).server_of(settings_.own_prefix));
    const auto info = connection.command({"INFO", "cpu"});
    const std::string_view said = text(*info);
    double seconds = 0;
    for (const std::string_view key : {"\nused_cpu_sys:", "\nused_cpu_user:", "\nused_cpu_sys_children:", "\nused_cpu_user_children:"}) {
      const auto at = said.find(key);
      if (at == said.npos) return std::nullopt;
      seconds += std::stod(std::string(said.substr(at + key.size(), 24)));
    }
    return seconds;
  } catch (const Failure&) {  // a managed server may forbid INFO; a dying one fails the cell elsewhere
    return std::nullopt;
  }
}

const RedisSettings& settings_of(const Service* service) {
  const auto* redis = dynamic_cast<const RedisService*>(service);
  if (redis == nullptr) throw Failure("a member that needs the service redis was given none");
  return redis->settings();
}

}  // namespace feedrate::redis
