#include <algorithm>
#include <string>
#include <vector>

#include "common/redis/cluster.hpp"
#include "variants/feeding/queues/redis/external_workers.hpp"
#include "variants/feeding/queues/redis/partitions.hpp"

namespace feedrate::redis_queue {
namespace {

/// The number of elements in a key of any type.
double length_of(redis::Connection& connection, const std::string& key) {
  const std::string type(redis::text(*connection.command({"TYPE", key})));
  const char* command = type == "list" ? "LLEN" : type == "zset" ? "ZCARD" : type == "stream" ? "XLEN" : nullptr;
  return command == nullptr ? 0 : static_cast<double>(connection.command({command, key})->integer);
}

class Watch final : public QueueWatch {
 public:
  explicit Watch(const QueueConfig& config) : config_(config), count_(partitions_of(config.point)) {}

  std::string source() const override {
    return count_ == 1 ? KeyNames(config_.redis.prefix).tasks()
                       : fmt::format("{} partitions of {}", count_, config_.redis.prefix);
  }
  double longest_silence() const override { return config_.redis.delivery.lease_seconds; }
  void collect(const Add& add) override {
    try {
      if (partitions_.empty()) connect();
      add_gauges(add);
    } catch (...) {
      partitions_.clear();
      throw;
    }
  }

 private:
  struct Partition {
    KeyNames names;
    redis::Connection connection;
  };
  void connect() {
    const redis::Cluster cluster(config_.redis.url);
    std::vector<Partition> made;
    for (unsigned i = 0; i < count_; ++i) {
      const RedisSettings redis = partition_of(config_.redis, i, count_, cluster);
      made.push_back({KeyNames(redis.prefix), redis::Connection(redis.url)});
    }
    partitions_ = std::move(made);
  }
  void add_gauges(const Add& add) {
    using Key = std::string (KeyNames::*)() const;
    const auto gauge = [&](const char* name, const char* help, Key key) {
      double sum = 0;
      for (Partition& part : partitions_) sum += length_of(part.connection, (part.names.*key)());
      add(name, help, sum);
    };
    gauge("feedrate_queue_depth", "Elements waiting for a worker.", &KeyNames::tasks);
    gauge("feedrate_suspects", "Messages of dead workers that are waiting to be served alone.", &KeyNames::suspects);
    gauge("feedrate_delayed", "Tasks waiting for another attempt.", &KeyNames::delayed);
    gauge("feedrate_dead_letters", "Number of dead letters kept.", &KeyNames::dead);
    double workers = 0;  // each has a lease in every partition
    for (auto& [names, connection] : partitions_) {
      const std::string now = std::to_string(unix_ms());
      workers =
          std::max(workers, static_cast<double>(connection.command({"ZCOUNT", names.leases(), now, "+inf"})->integer));
    }
    add("feedrate_workers", "Workers whose lease has not expired.", workers);
  }

  const RedisConfig config_;
  const unsigned count_;
  std::vector<Partition> partitions_;  // reconnected after a connection is lost
};

}  // namespace

std::unique_ptr<QueueWatch> watch(const QueueConfig& config) { return std::make_unique<Watch>(config); }

}  // namespace feedrate::redis_queue
