#pragma once
#include "common/redis/cluster.hpp"
#include "variants/feeding/queues/redis/broker.hpp"

/// Queues with several partitions. Each partition has all the keys of a queue, in its own hash slot. A producer sends
/// to one partition and gets its results there; a worker serves several partitions in turn.
namespace feedrate::redis_queue {

/// The prefix of partition `i` of `n`, with the partition's number in its hash tag. A single partition uses the queue's
/// own prefix.
inline std::string prefix_of(const std::string& prefix, unsigned i, unsigned n) {
  if (n == 1) return prefix;
  if (redis::hash_tag(prefix).empty()) return fmt::format("{}:{{{}.{}}}", prefix, prefix, i);
  const auto end = prefix.find('}', prefix.find('{'));
  return fmt::format("{}.{}{}", prefix.substr(0, end), i, prefix.substr(end));
}

/// The settings of one partition: its keys and the server that holds them now.
inline RedisSettings partition_of(RedisSettings redis, unsigned i, unsigned n, const redis::Cluster& cluster) {
  redis.prefix = prefix_of(redis.prefix, i, n);
  redis.own_prefix = prefix_of(redis.own_prefix, i, n);
  redis.url = cluster.server_of(redis.prefix);
  return redis;
}

inline RedisConfig partition_of(RedisConfig config, unsigned i, const redis::Cluster& cluster) {
  config.redis = partition_of(std::move(config.redis), i, partitions_of(config.point), cluster);
  return config;
}

/// The partitions that worker `worker` of `workers` serves. Each partition has at least one worker, and each worker at
/// least one partition.
inline std::vector<unsigned> served_by(unsigned worker, unsigned workers, unsigned partitions) {
  if (workers >= partitions) return {worker % partitions};
  std::vector<unsigned> mine;
  for (unsigned i = worker; i < partitions; i += workers) mine.push_back(i);
  return mine;
}

/// Brokers for several partitions, polled in turn. If a partition has a suspect, which may kill the process, only that
/// partition is polled, and only when the others have no batch in flight.
class PartitionedBroker final : public Broker {
 public:
  explicit PartitionedBroker(std::vector<std::unique_ptr<PartBroker>> parts) : parts_(std::move(parts)) {}

  std::optional<Batch> fetch() override {
    if (const std::size_t one = with_suspect(); one != parts_.size()) {
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (i != one && !parts_[i]->idle()) return std::nullopt;
      }
      return fetch_from(one);
    }
    for (std::size_t asked = 0; asked < parts_.size(); ++asked) {
      if (auto batch = fetch_from(next_++ % parts_.size())) return batch;
    }
    return std::nullopt;
  }
  void complete(const Batch& batch) override {
    Batch own = batch;
    own.tag /= parts_.size();
    parts_[batch.tag % parts_.size()]->complete(own);
  }
  void progress() override {
    for (const auto& part : parts_) part->progress();
  }
  bool finish() override {
    bool finished = true;
    for (const auto& part : parts_) finished &= part->finish();
    return finished;
  }

 private:
  std::optional<Batch> fetch_from(std::size_t i) {
    auto batch = parts_[i]->fetch();
    if (batch) batch->tag = batch->tag * parts_.size() + i;
    return batch;
  }
  /// The part whose suspect is next; a suspect that is held precedes waiting ones. parts_.size() if there is none.
  std::size_t with_suspect() const {
    std::size_t waiting = parts_.size();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Suspects suspects = parts_[i]->suspects();
      if (suspects == Suspects::held) return i;
      if (suspects == Suspects::waiting && waiting == parts_.size()) waiting = i;
    }
    return waiting;
  }
  std::vector<std::unique_ptr<PartBroker>> parts_;
  std::size_t next_ = 0;
};

/// A broker for the given partitions; `make(i)` creates the broker of partition i.
template <class Make>
std::unique_ptr<Broker> broker_of(const std::vector<unsigned>& partitions, Make&& make) {
  if (partitions.size() == 1) return make(partitions.front());
  std::vector<std::unique_ptr<PartBroker>> parts;
  parts.reserve(partitions.size());
  for (const unsigned i : partitions) parts.push_back(make(i));
  return std::make_unique<PartitionedBroker>(std::move(parts));
}

}  // namespace feedrate::redis_queue
