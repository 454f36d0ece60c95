#pragma once
#include <charconv>
#include <deque>

#include "common/redis/own_keys.hpp"
#include "common/redis/service.hpp"
#include "variants/feeding/queue.hpp"
#include "variants/feeding/queues/redis/reader.hpp"

/// The producer's and the collector's end of a Redis queue, used by the load generator. A Dialect supplies the
/// commands; see queue.hpp.
namespace feedrate::redis_queue {

/// The config of a queue, with the settings of its server.
struct RedisConfig : QueueConfig {
  explicit RedisConfig(const QueueConfig& config) : QueueConfig(config), redis(redis::settings_of(config.service)) {}
  RedisSettings redis;
};

// Above these limits producers wait.
inline constexpr std::size_t kMaxUnsent = 8 << 20;           // bytes not yet sent by this process
inline constexpr std::size_t kMaxUnsentWatched = 256 << 10;  // the same limit if the server's memory is watched
inline constexpr std::size_t kMaxUnanswered = 64 << 10;      // replies outstanding from the server

/// The axes that all Redis queues have.
struct Options {
  std::size_t pack = 1;
  unsigned partitions = 1;
  unsigned memory_percent = 0;
  std::string aof = "no";
};
inline const Axes<Options>& own_axes() {
  static const auto kAxes =
      Axes<Options>()
          .number("pack", &Options::pack, {1, 1 << 16}, "messages per list element or stream entry")
          .number("partitions", &Options::partitions, {1, 1024},
                  "parts of the queue, each with its keys in one slot of a Redis Cluster; each producer uses one part")
          .number("memory-percent", &Options::memory_percent, {0, 100},
                  "producers wait while the server uses more than this share of its maxmemory; 0: no check")
          .word("aof", &Options::aof, {"no", "everysec", "always"},
                "append-only file of a private server: none, synced every second, or synced before each reply");
  return kAxes;
}
inline std::size_t pack_of(const Point& point) { return own_axes().of(point.own).pack; }
inline unsigned partitions_of(const Point& point) { return own_axes().of(point.own).partitions; }

/// Monitors whether the server has memory left for more tasks, by polling INFO.
class MemoryGauge {
 public:
  /// `percent` of maxmemory may be used; 0: the server is never queried.
  explicit MemoryGauge(unsigned percent) : percent_(percent) {}
  /// Appends the INFO command when the next poll is due.
  void ask(redis::Connection& connection) {
    if (percent_ == 0 || asking_ || now_ns() - asked_ns_ < kEveryNs) return;
    connection.append({"INFO", "memory"});
    asking_ = true;
    asked_ns_ = now_ns();
  }
  /// Reads the memory use if `reply` answers the INFO command.
  void inspect(const redisReply& reply) {
    if (!asking_ || reply.type != REDIS_REPLY_STRING || !redis::text(reply).starts_with("# Memory")) return;
    asking_ = false;
    const std::uint64_t most = number_of(redis::text(reply), "\nmaxmemory:");
    full_ = most != 0 && number_of(redis::text(reply), "\nused_memory:") * 100 > most * percent_;
  }
  /// Whether the limit is exceeded; also true until the first reply arrives.
  bool full() const { return watches() && full_; }
  bool watches() const { return percent_ != 0; }

 private:
  static constexpr std::uint64_t kEveryNs = 1'000'000;
  static std::uint64_t number_of(std::string_view info, std::string_view name) {
    const auto at = info.find(name);
    std::uint64_t value = 0;
    if (at != info.npos) std::from_chars(info.data() + at + name.size(), info.data() + info.size(), value);
    return value;
  }
  unsigned percent_;
  bool asking_ = false, full_ = true;
  std::uint64_t asked_ns_ = 0;
};

/// A Dialect's `Push` if tasks are stored on the server in the same way as results.
template <class Dialect>
struct PushAsResults {
  explicit PushAsResults(const RedisConfig&) {}
  void operator()(redis::Connection& connection, std::string_view key, const ConstMessages& messages,
                  std::size_t pack) const {
    Dialect::push_results(connection, key, messages, pack);
  }
};

template <class Dialect>
class RedisProducer final : public Producer {
 public:
  explicit RedisProducer(const RedisConfig& config)
      : connection_(config.redis.url),
        key_(KeyNames(config.redis.prefix).tasks()),
        stride_(config.in_stride()),
        pack_(pack_of(config.point)),
        max_elements_(config.point.capacity),
        push_(config),
        memory_(own_axes().of(config.point.own).memory_percent),
        shared_(config.redis.shared),
        slots_(config.point.batch * stride_),
        stages_(config.stages) {}

  Messages reserve(std::size_t n) override {
    progress();
    if (connection_.unsent() > kMaxUnsent || connection_.unanswered() > kMaxUnanswered) return {};
    if (max_elements_ != 0 && length_ >= max_elements_) {
      if (connection_.unanswered() == 0) Dialect::ask_length(connection_, key_);
      return {};
    }
    memory_.ask(connection_);
    // The server's count does not yet include data in flight.
    if (memory_.full() || (memory_.watches() && connection_.unsent() > kMaxUnsentWatched)) return {};
    return {slots_.data(), stride_, std::min(n, slots_.size() / stride_)};
  }
  void publish(std::size_t n) override {
    push_(connection_, key_, {slots_.data(), stride_, n}, pack_);
    if constexpr (Dialect::kVanishes) redis::expire(connection_, key_, shared_);
    if (stages_ != nullptr) {
      stages_->for_sampled({slots_.data(), stride_, n}, [&](std::uint64_t id) {
        unbrokered_.push_back({replied_ + connection_.unanswered(), id});
      });
    }
    if (max_elements_ != 0) Dialect::ask_length(connection_, key_);
    connection_.flush();
  }
  void progress() override {
    while (const redis::Reply reply = connection_.try_read()) {
      ++replied_;
      memory_.inspect(*reply);
      // Integer replies are always element counts; a stream answers XADD with an id.
      if (reply->type == REDIS_REPLY_INTEGER) length_ = static_cast<std::size_t>(reply->integer);
    }
    for (; !unbrokered_.empty() && unbrokered_.front().replies <= replied_; unbrokered_.pop_front()) {
      stages_->mark(unbrokered_.front().id, Stage::brokered, now_ns());
    }
  }

 private:
  struct Unbrokered {
    std::uint64_t replies;  ///< number of replies after which the server is known to have the message
    std::uint64_t id;
  };
  redis::Connection connection_;
  std::string key_;
  std::size_t stride_, pack_, max_elements_, length_ = 0;
  typename Dialect::Push push_;
  MemoryGauge memory_;
  bool shared_;
  std::vector<std::byte> slots_;
  StageClock* stages_;
  std::deque<Unbrokered> unbrokered_;  // sampled messages
  std::uint64_t replied_ = 0;
};

template <class Dialect>
class RedisCollector final : public Collector {
 public:
  RedisCollector(const RedisConfig& config, unsigned index)
      : connection_(config.redis.url),
        reader_(connection_, typename Dialect::Results(config, KeyNames(config.redis.prefix).results(index)),
                std::max<std::size_t>(1, config.point.batch / pack_of(config.point))),
        stride_(config.out_stride()),
        slots_(config.point.batch * stride_) {}

  ConstMessages poll(std::size_t n) override {
    if (released_ == filled_) {
      released_ = 0;
      filled_ = reader_.read({slots_.data(), stride_, slots_.size() / stride_}, nullptr);
    }
    return {slots_.data() + released_ * stride_, stride_, std::min(n, filled_ - released_)};
  }
  void release(std::size_t n) override { released_ += n; }

 private:
  redis::Connection connection_;
  Reader<typename Dialect::Results> reader_;
  std::size_t stride_;
  std::vector<std::byte> slots_;
  std::size_t filled_ = 0, released_ = 0;
};

}  // namespace feedrate::redis_queue
