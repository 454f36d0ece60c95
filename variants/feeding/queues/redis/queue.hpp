#pragma once
#include <optional>
#include <random>

#include "variants/feeding/queues/redis/external_workers.hpp"
#include "variants/feeding/queues/redis/partitions.hpp"

/// Queues over a Redis server: tasks go from producers to workers through `<prefix>:tasks`, and results go back through
/// `<prefix>:results:<producer>`. A Dialect supplies the commands:
///
///     static constexpr const char *kAddCeiling, *kTakeCeiling   ceilings of its commands (common/redis/limits.cpp);
///                                                           Results has two members of the same names
///     static constexpr bool kVanishes                       whether an emptied key disappears, with its expiry
///     static constexpr std::string_view kTrimResults        script that removes results (KEYS[1]) older than ARGV[1]
///                                                           ms; empty if taking a result removes it
///     static constexpr bool kKeeps                          whether the server keeps tasks that are being served
///     static void create(Connection&, key, group)           called before the key is used
///     static constexpr const char* kKind                    type of the tasks' key: "list", "stream", "zset"
///     static std::vector<Axis> axes()
///     class Push(RedisConfig)                               appends the commands that add tasks
///       void operator()(Connection&, key, messages, pack)
///     static void push_results(Connection&, key, messages, pack)
///     static void ask_length(Connection&, key)              appends the command that returns the number of elements
///     static constexpr const char* kWithdraw                script that removes from KEYS[1] the tasks of the first
///                                                           ARGV[1] producers (is_of_first), and returns how many
///     class Tasks(Connection&, RedisConfig, Redelivery&), class Results(RedisConfig, key)
///                                                           read elements; see Reader
///     class Acks(Connection&, KeyNames, Redelivery&)        acknowledges completed tasks
///       void done(Connection&, ids), answer(Connection&, const redisReply&)
namespace feedrate::redis_queue {

/// Sets how a private server persists its data. Returns whether the server, private or not, writes each message to its
/// append-only file before it replies; with a file that is synced every second, a crash may lose a second. Throws
/// Failure if the server is not ours to set.
bool persist(redis::Connection&, bool shared, const std::string& aof);

template <class Dialect>
class RedisQueue final : public Queue {
 public:
  explicit RedisQueue(const QueueConfig& config) : config_(with_keys_of_its_own(RedisConfig(config))) {
    const unsigned partitions = partitions_of(config.point);
    const redis::Cluster cluster(config_.redis.url);
    for (unsigned i = 0; i < partitions; ++i) parts_.push_back(std::make_unique<Part>(config_, i, cluster));
    durable_ = persist(parts_.front()->control, config_.redis.shared, own_axes().of(config.point.own).aof);
    if (config.external_worker) return;
    for (const auto& part : parts_) part->create();
    workers_.emplace(config_, config.point.workers, [this, partitions](unsigned index) {
      return broker_of(served_by(index, config_.point.workers, partitions), [&](unsigned i) {
        return std::make_unique<RedisBroker<Dialect>>(parts_[i]->config, worker_name(index), worker_name(index));
      });
    });
  }
  ~RedisQueue() override {
    workers_.reset();
    if (!config_.external_worker || !failed_) return;
    for (const auto& part : parts_) part->withdraw();
  }
  std::unique_ptr<Producer> producer(unsigned index) override {
    return std::make_unique<RedisProducer<Dialect>>(part_of(index).config);
  }
  std::unique_ptr<Collector> collector(unsigned index) override {
    return std::make_unique<RedisCollector<Dialect>>(part_of(index).config, index);
  }
  void start() override {
    if (workers_) workers_->start();
  }
  void stop(bool drain) override {
    failed_ |= !drain;
    if (workers_) workers_->stop(drain);
  }
  void check() override {
    for (const auto& part : parts_) part->keys.keep();
    if (workers_) workers_->check();
  }
  Cost cost() const override { return {.host_threads = workers_ ? workers_->size() : 0}; }
  Choices choices() const override { return workers_ ? workers_->choices() : Choices{}; }
  bool durable() const override { return durable_; }

 private:
  struct Part {
    Part(const RedisConfig& whole, unsigned i, const redis::Cluster& cluster)
        : config(partition_of(whole, i, cluster)),
          names(config.redis.prefix),
          results(results_of(config, names, i)),
          control(config.redis.url),
          keys(config.redis, keys_of(config, names, results),
               config.external_worker ? redis::Keys::among_others : redis::Keys::of_this_run) {}

    void create() {
      create(names.tasks());
      for (const std::string& key : results) create(key);
    }
    /// On a server that others use, a transaction creates the key together with its expiry, so that a killed process
    /// cannot leave a key that never expires.
    void create(const std::string& key) {
      if (config.redis.shared) control.command({"MULTI"});
      Dialect::create(control, key, kGroup);
      if (!config.redis.shared) return;
      control.command({"PEXPIRE", key, redis::kLifetimeMs});
      control.command({"EXEC"});
    }
    /// Removes from an external worker's queue the tasks whose results are no longer awaited.
    void withdraw() {
      try {
        const std::string lists = std::to_string(config.point.producers);
        control.command({"EVAL", script_of({Dialect::kWithdraw}), "1", names.tasks(), lists});
      } catch (const Failure& failure) {
        spdlog::warn("the failed run may have left tasks in {}: {}", names.tasks(), failure.what());
      }
    }

    RedisConfig config;
    KeyNames names;
    std::vector<std::string> results;  // keys of the partition's producers
    redis::Connection control;
    redis::OwnKeys keys;
  };

  static std::string worker_name(unsigned index) { return fmt::format("worker-{}", index); }
  static RedisConfig with_keys_of_its_own(RedisConfig config) {
    if (!config.external_worker) config.redis.prefix = config.redis.own_prefix;
    return config;
  }
  static std::vector<std::string> results_of(const RedisConfig& config, const KeyNames& names, unsigned part) {
    std::vector<std::string> keys;
    for (unsigned p = part; p < config.point.producers; p += partitions_of(config.point)) {
      keys.push_back(names.results(p));
    }
    return keys;
  }
  /// The keys that only this queue uses in a partition. The other keys of an external worker may be shared.
  static std::vector<std::string> keys_of(const RedisConfig& config, const KeyNames& names,
                                          std::vector<std::string> all) {
    if (config.external_worker) return all;
    for (std::string& key : names.of_all_workers()) all.push_back(std::move(key));
    for (unsigned i = 0; i < config.point.workers; ++i) {
      all.push_back(names.processing(worker_name(i)));
      all.push_back(names.alone(worker_name(i)));
    }
    return all;
  }
  const Part& part_of(unsigned producer) const { return *parts_[producer % parts_.size()]; }

  RedisConfig config_;
  std::vector<std::unique_ptr<Part>> parts_;
  bool failed_ = false, durable_ = false;
  std::optional<WorkerPool> workers_;
};

inline std::string why_unsupported_point(Point& point, Device&, const Workload&) {
  const std::size_t pack = pack_of(point);
  return pack <= point.batch ? ""
                             : fmt::format("pack {} needs a batch and a window of at least {} messages", pack, pack);
}

/// The worker's end in a separate process, which serves all partitions.
template <class Dialect>
std::unique_ptr<Broker> make_broker(const QueueConfig& asked, const std::string& consumer) {
  const RedisConfig config(asked);
  const std::string incarnation = fmt::format("{}:{:08x}", consumer, std::random_device()());
  const redis::Cluster cluster(config.redis.url);
  return broker_of(served_by(0, 1, partitions_of(config.point)), [&](unsigned i) {
    const RedisConfig part = partition_of(config, i, cluster);
    redis::Connection control(part.redis.url);
    Dialect::create(control, KeyNames(part.redis.prefix).tasks(), kGroup);
    return std::make_unique<RedisBroker<Dialect>>(part, consumer, incarnation);
  });
}

/// Fills in the parts of a registration that follow from the Dialect. The Dialect gives the ceilings of its commands in
/// `kAddCeiling` and `kTakeCeiling`.
template <class Dialect>
QueueEntry entry_of(const std::string& description) {
  const auto bounds_of = [](const BoundedPoint& bounded, Bounds& bounds) {
    // A task and a result each pass through the server: half a round trip in, half a round trip out.
    bounds.time(2 * floor_of("redis_round_trip_ns"));
    if (partitions_of(bounded.point) > 1) return;  // partitions may be on several servers, whose limits are unknown
    // The server adds and takes each task and each result once.
    const Expression each = 1 / ceiling_of(Dialect::kAddCeiling) + 1 / ceiling_of(Dialect::kTakeCeiling) +
                            1 / ceiling_of(Dialect::Results::kAddCeiling) +
                            1 / ceiling_of(Dialect::Results::kTakeCeiling);
    bounds.rate(given("pack", static_cast<double>(pack_of(bounded.point))) / each);
    bounds.bytes("redis_bytes_per_second",
                 static_cast<double>(stride_of(bounded.in - sizeof(Header)) + stride_of(bounded.out - sizeof(Header))));
  };
  return {.description = description,
          .guarantee = {Dialect::kKeeps ? Delivery::at_least_once : Delivery::at_most_once,
                        "per producer with one worker", true},
          .uses_transfer = true,
          .service = "redis",
          .axes = Dialect::axes(),
          .make = make_queue<RedisQueue<Dialect>>,
          .why_unsupported = why_unsupported_point,
          .bounds = bounds_of,
          .search = {{"pack", {"1", "16", "64"}}, {"workers", {"1", "2", "4"}}},
          .workers = ExternalWorkers{make_broker<Dialect>, watch, dead_letters}};
}

}  // namespace feedrate::redis_queue
