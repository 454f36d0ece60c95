#pragma once
#include "common/redis/cluster.hpp"
#include "variants/queues/redis/broker.hpp"

/// A queue of several partitions: each has all keys of a queue, in a slot of its own. Every producer sends to one of
/// them, and gets its results there; a worker serves several by turns.
namespace feedrate::redis_queue {

/// The prefix of partition `i` of `n`: with the partition's number in its hash tag. Of a single one: the queue's own.
inline std::string prefix_of(const std::string& prefix, unsigned i, unsigned n) {
  if (n == 1) return prefix;
  if (redis::hash_tag(prefix).empty()) return fmt::format("{}:{{{}.{}}}", prefix, prefix, i);
  const auto end = prefix.find('}', prefix.find('{'));
  return fmt::format("{}.{}{}", prefix.substr(0, end), i, prefix.substr(end));
}

/// The settings of one partition: its keys, and the server that has them now.
inline RedisSettings partition_of(RedisSettings redis, unsigned i, unsigned n) {
  redis.prefix = prefix_of(redis.prefix, i, n);
  redis.own_prefix = prefix_of(redis.own_prefix, i, n);
  redis.url = redis::node_of(redis.url, redis.prefix);
  return redis;
}

inline QueueConfig partition_of(QueueConfig config, unsigned i) {
  config.redis = partition_of(std::move(config.redis), i, partitions_of(config.point));
  return config;
}

/// Those of `partitions` that worker `worker` of `workers` serves. Each partition has one, and each worker has one.
inline std::vector<unsigned> served_by(unsigned worker, unsigned workers, unsigned partitions) {
  if (workers >= partitions) return {worker % partitions};
  std::vector<unsigned> mine;
  for (unsigned i = worker; i < partitions; i += workers) mine.push_back(i);
  return mine;
}

/// Brokers of several partitions, asked by turns.
class PartitionedBroker final : public Broker {
 public:
  explicit PartitionedBroker(std::vector<std::unique_ptr<Broker>> parts) : parts_(std::move(parts)) {}

  std::optional<Batch> fetch() override {
    for (std::size_t asked = 0; asked < parts_.size(); ++asked) {
      const std::size_t i = next_++ % parts_.size();
      if (auto batch = parts_[i]->fetch()) {
        batch->tag = batch->tag * parts_.size() + i;
        return batch;
      }
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
  std::vector<std::unique_ptr<Broker>> parts_;
  std::size_t next_ = 0;
};

/// A broker for some partitions; `make(i)` makes that of partition i.
template <class Make>
std::unique_ptr<Broker> broker_of(const std::vector<unsigned>& partitions, Make&& make) {
  if (partitions.size() == 1) return make(partitions.front());
  std::vector<std::unique_ptr<Broker>> parts;
  for (const unsigned i : partitions) parts.push_back(make(i));
  return std::make_unique<PartitionedBroker>(std::move(parts));
}

}  // namespace feedrate::redis_queue
