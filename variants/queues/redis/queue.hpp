#pragma once
#include <optional>
#include <random>

#include "variants/queues/redis/broker.hpp"
#include "variants/queues/redis/floors.hpp"

/// Queues over a Redis server: tasks go from producers through `<prefix>:tasks` to workers, results back through
/// `<prefix>:results:<producer>`. A Dialect supplies the commands:
///
///     static constexpr const char* kAddFloor, kTakeFloor    the floors of its commands (floors.cpp); Results has two
///                                                           of the same names
///     static constexpr bool kVanishes                       whether a key that was emptied is gone, its expiry too
///     static constexpr Custody kCustody                     who holds what is being served
///     static void create(Connection&, key, group)           before the key is used
///     static constexpr const char* kKind                    how tasks lie there: "list", "stream", "zset"
///     static std::vector<Axis> axes()
///     class Push(QueueConfig)                               appends the commands that add tasks
///       void operator()(Connection&, key, messages, pack)
///     static void push_results(Connection&, key, messages, pack)
///     static void ask_length(Connection&, key)              appends the command that asks how many elements wait
///     static constexpr const char* kWithdraw                a script that removes the tasks from KEYS[1] whose reply
///                                                           list is below ARGV[1], and returns how many
///     class Tasks(Connection&, QueueConfig, Redelivery&), class Results(QueueConfig, key)
///                                                           read elements; see Reader
///     class Acks(Connection&, KeyNames, Redelivery&)        tells the server what is done
///       void done(Connection&, ids), answer(Connection&, const redisReply&)
namespace feedrate::redis_queue {

template <class Dialect>
class RedisQueue final : public Queue {
 public:
  explicit RedisQueue(const QueueConfig& config)
      : config_(with_keys_of_its_own(config)),
        names_(config_.redis.prefix),
        control_(config.redis.url),
        keys_(config_.redis, keys(), config.external_worker ? redis::Keys::among_others : redis::Keys::of_this_run) {
    if (config.external_worker) return;
    create(names_.tasks());
    for (unsigned i = 0; i < config_.point.producers; ++i) create(names_.results(i));
    workers_.emplace(config_, config.point.workers, [this](unsigned index) {
      return std::make_unique<RedisBroker<Dialect>>(config_, worker_name(index), worker_name(index));
    });
  }
  ~RedisQueue() override {
    workers_.reset();
    if (config_.external_worker && failed_) withdraw();
  }
  std::unique_ptr<Producer> producer(unsigned) override { return std::make_unique<RedisProducer<Dialect>>(config_); }
  std::unique_ptr<Collector> collector(unsigned index) override {
    return std::make_unique<RedisCollector<Dialect>>(config_, index);
  }
  void start() override {
    if (workers_) workers_->start();
  }
  void stop(bool drain) override {
    failed_ |= !drain;
    if (workers_) workers_->stop(drain);
  }
  void check() override {
    keys_.keep();
    if (workers_) workers_->check();
  }
  Cost cost() const override { return {.host_threads = workers_ ? workers_->size() : 0}; }

 private:
  static std::string worker_name(unsigned index) { return fmt::format("worker-{}", index); }
  static QueueConfig with_keys_of_its_own(QueueConfig config) {
    if (!config.external_worker) config.redis.prefix = config.redis.own_prefix;
    return config;
  }
  /// What this queue alone uses: an external worker's tasks may be others' too.
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (unsigned i = 0; i < config_.point.producers; ++i) all.push_back(names_.results(i));
    if (config_.external_worker) return all;
    for (std::string& key : names_.of_all_workers()) all.push_back(std::move(key));
    for (unsigned i = 0; i < config_.point.workers; ++i) {
      all.push_back(names_.processing(worker_name(i)));
      all.push_back(names_.alone(worker_name(i)));
    }
    return all;
  }
  /// On a server that others use, the key and its expiry come to be together: a kill falls between no two commands.
  void create(const std::string& key) {
    if (config_.redis.shared) control_.command({"MULTI"});
    Dialect::create(control_, key, kGroup);
    if (!config_.redis.shared) return;
    control_.command({"PEXPIRE", key, redis::kLifetimeMs});
    control_.command({"EXEC"});
  }
  /// Takes back from an external worker the tasks that nobody awaits any more.
  void withdraw() {
    try {
      const std::string lists = std::to_string(config_.point.producers);
      control_.command({"EVAL", Dialect::kWithdraw, "1", names_.tasks(), lists});
    } catch (const Failure& failure) {
      spdlog::warn("tasks of the failed run may be left in {}: {}", names_.tasks(), failure.what());
    }
  }

  QueueConfig config_;
  KeyNames names_;
  redis::Connection control_;
  redis::OwnKeys keys_;
  bool failed_ = false;
  std::optional<WorkerPool> workers_;
};

inline std::string fit(Point& point, Device&, const Workload&) {
  const std::size_t pack = pack_of(point);
  return pack <= point.batch ? ""
                             : fmt::format("pack {} needs a batch and a window of at least as many messages", pack);
}

/// A worker's end in a process of its own.
template <class Dialect>
std::unique_ptr<Broker> make_broker(const QueueConfig& config, const std::string& consumer) {
  redis::Connection control(config.redis.url);
  Dialect::create(control, KeyNames(config.redis.prefix).tasks(), kGroup);
  const std::string incarnation = fmt::format("{}:{:08x}", consumer, std::random_device()());
  return std::make_unique<RedisBroker<Dialect>>(config, consumer, incarnation);
}

/// Fills in the parts of a registration that follow from the Dialect, which names the floors of its commands:
/// `kAddFloor`, `kTakeFloor`.
template <class Dialect>
QueueEntry entry_of(const std::string& description, Delivery delivery) {
  const auto limits = [](const Bounded& bounded, Limits& limits) {
    // A task and a result each pass the server: half a round trip in, half a round trip out.
    const auto trip = limits.floor("redis_round_trip_ns");
    limits.time("2*redis_round_trip_ns", trip ? std::optional(2 * *trip) : std::nullopt);
    // And each is added and taken.
    const auto add = limits.floor(Dialect::kAddFloor), take = limits.floor(Dialect::kTakeFloor);
    const auto add_result = limits.floor(Dialect::Results::kAddFloor);
    const auto take_result = limits.floor(Dialect::Results::kTakeFloor);
    if (add && take && add_result && take_result) {
      limits.rate(
          std::string(Dialect::kAddFloor) + "+" + Dialect::kTakeFloor,
          static_cast<double>(pack_of(bounded.point)) / (1 / *add + 1 / *take + 1 / *add_result + 1 / *take_result));
    }
    limits.bytes("redis_bytes_per_second",
                 static_cast<double>(stride_of(bounded.in - sizeof(Header)) + stride_of(bounded.out - sizeof(Header))));
  };
  return {.description = description,
          .delivery = delivery,
          .order = "per producer with one worker",
          .durable = true,
          .uses_transfer = true,
          .uses_redis = true,
          .axes = Dialect::axes(),
          .make = make_queue<RedisQueue<Dialect>>,
          .fit = fit,
          .floors = add_redis_floors,
          .limits = limits,
          .search = {{"pack", {"1", "16", "64"}}, {"workers", {"1", "2", "4"}}},
          .make_broker = make_broker<Dialect>};
}

}  // namespace feedrate::redis_queue
