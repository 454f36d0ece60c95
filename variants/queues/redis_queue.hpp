#pragma once
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstring>
#include <deque>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/redis/own_keys.hpp"
#include "variants/queues/redis_floors.hpp"
#include "variants/worker.hpp"

/// What `redis_list` and `redis_stream` share: both carry *elements*, each one or more messages back to back (a header
/// and its payload, padded to 16 bytes), from `<prefix>:tasks` to workers, and results the same way through
/// `<prefix>:results:<producer>`. A Dialect supplies the commands:
///
///     static constexpr const char* kAddFloor, kTakeFloor    the floors of its commands (redis_floors.cpp)
///     static constexpr bool kVanishes                       whether a key that was emptied is gone, its expiry too
///     static void create(Connection&, key, group)           before the key is used
///     static void push(Connection&, key, messages, pack)    appends the commands that add messages
///     static void ask_length(Connection&, key)              appends the command that asks how many elements wait
///     static constexpr const char* kWithdraw                a script that removes the tasks from KEYS[1] whose reply
///                                                           list is below ARGV[1], and returns how many
///     class Source(key, group, consumer)                    reads elements; an empty group reads as a lone reader
///       unsigned request(Connection&, elements)             appends commands that ask for up to `elements` more and
///                                                           returns how many; integer replies are skipped
///       void parse(const redisReply&, vector<Element>&)     takes its reply apart
///     class Acks(key, group)                                tells the server what is done
///       void done(Connection&, ids), answer(Connection&, const redisReply&)
namespace feedrate::redis_queue {

using redis::Connection;
using redis::Reply;

inline constexpr int kBlockMs = 50;                       // a blocking read returns at least this often
inline constexpr std::size_t kMostUnsent = 8 << 20;       // bytes waiting in this process before producers are held up
inline constexpr std::size_t kMostUnanswered = 64 << 10;  // replies the server owes us before producers are held up

/// The axes of these queues themselves.
struct Options {
  std::size_t pack = 1;
};
inline const Axes<Options>& own_axes() {
  static const auto kAxes =
      Axes<Options>().number("pack", &Options::pack, {1, 1 << 16}, "messages per list element or stream entry");
  return kAxes;
}
inline std::size_t pack_of(const Point& point) { return own_axes().of(point.own).pack; }

struct Element {
  std::string_view bytes;
  std::string_view id;  ///< of a stream entry; empty for list elements
};

inline std::string tasks_key(const std::string& prefix) { return prefix + ":tasks"; }
inline std::string results_key(const std::string& prefix, unsigned producer) {
  return fmt::format("{}:results:{}", prefix, producer);
}
inline constexpr auto kGroup = "feedrate";

/// `pack` messages an element; the last may hold fewer. Inside an element each message takes what its length asks for,
/// not its slot's stride; full slots lie as an element wants them and are not copied.
template <class F>
void for_each_element(const ConstMessages& messages, std::size_t pack, F&& f) {
  std::string assembled;
  for (std::size_t begin = 0; begin < messages.count; begin += pack) {
    const ConstMessages run = messages.from(begin).first(pack);
    const auto bytes_of = [&](std::size_t i) { return stride_of(payload_bytes(run.header(i))); };
    const auto* first = reinterpret_cast<const char*>(run.base);
    bool full = true;
    for (std::size_t i = 0; i < run.count; ++i) full &= bytes_of(i) == run.stride;
    if (full) {
      f(std::string_view(first, run.count * run.stride));
      continue;
    }
    assembled.clear();
    for (std::size_t i = 0; i < run.count; ++i) assembled.append(first + i * run.stride, bytes_of(i));
    f(std::string_view(assembled));
  }
}

/// Adds messages to a key, and on a server that others use puts off its expiry.
template <class Dialect>
void push(Connection& connection, const std::string& key, const ConstMessages& messages, std::size_t pack,
          bool shared) {
  Dialect::push(connection, key, messages, pack);
  if constexpr (Dialect::kVanishes) redis::expire(connection, key, shared);
}

/// Reads elements from one key and lays their messages into slots, always one request ahead.
template <class Dialect>
class Reader {
 public:
  Reader(Connection& connection, std::string key, std::string group, std::string consumer, std::size_t elements)
      : connection_(connection), source_(std::move(key), std::move(group), std::move(consumer)), most_(elements) {}

  /// Copies messages that have arrived into `slots` and returns how many; ids of elements that were taken to their end
  /// are appended to `ids`. Never blocks.
  std::size_t read(Messages slots, std::vector<std::string>* ids) {
    std::size_t filled = 0;
    while (filled < slots.count) {
      if (at_ == elements_.size() && !next_reply()) break;
      filled += unpack(slots.from(filled));
      if (offset_ < elements_[at_].bytes.size()) break;  // the slots are full, the element is not empty yet
      if (ids != nullptr && !elements_[at_].id.empty()) ids->emplace_back(elements_[at_].id);
      ++at_;
      offset_ = 0;
    }
    return filled;
  }
  /// No more requests. True once nothing asked for can arrive any more.
  bool finish() {
    finishing_ = true;
    return expected_ == 0 && at_ == elements_.size();
  }

 private:
  bool next_reply() {
    if (expected_ == 0 && !finishing_) request();
    while (expected_ != 0) {
      Reply reply = connection_.try_read();
      if (!reply) return false;
      --expected_;
      if (reply->type == REDIS_REPLY_INTEGER) continue;  // of a trim that went ahead of the read
      reply_ = std::move(reply);
      elements_.clear();
      at_ = 0;
      source_.parse(*reply_, elements_);
      if (!finishing_) request();
      return !elements_.empty();
    }
    return false;
  }
  void request() {
    expected_ = source_.request(connection_, most_);
    connection_.flush();
  }
  /// Messages of the current element from `offset_` on. What is no message is reported and dropped.
  std::size_t unpack(Messages slots) {
    const std::string_view bytes = elements_[at_].bytes;
    std::size_t n = 0;
    while (n < slots.count && offset_ < bytes.size()) {
      Header header{};
      const std::size_t left = bytes.size() - offset_;
      std::memcpy(&header, bytes.data() + offset_, std::min(left, sizeof header));
      const std::size_t length = payload_bytes(header);
      if (left < sizeof header || left - sizeof header < length) {
        spdlog::warn("dropped {} bytes that are no message: shorter than their header says", left);
        offset_ = bytes.size();
        break;
      }
      // A payload longer than the slot keeps its length in the header; the workload answers it as too long.
      const std::size_t kept = std::min(length, slots.stride - sizeof header);
      std::memcpy(slots.base + n * slots.stride, bytes.data() + offset_, sizeof header + kept);
      offset_ = std::min(bytes.size(), offset_ + stride_of(length));
      ++n;
    }
    return n;
  }

  Connection& connection_;
  typename Dialect::Source source_;
  std::size_t most_;
  Reply reply_;
  std::vector<Element> elements_;
  std::size_t at_ = 0, offset_ = 0;
  unsigned expected_ = 0;  // replies to the last request
  bool finishing_ = false;
};

template <class Dialect>
class RedisProducer final : public Producer {
 public:
  RedisProducer(const QueueConfig& config)
      : connection_(config.redis.url),
        key_(tasks_key(config.redis.prefix)),
        stride_(config.in_stride()),
        pack_(pack_of(config.point)),
        most_elements_(config.point.capacity),
        shared_(config.redis.shared),
        slots_(config.point.batch * stride_),
        stages_(config.stages) {}

  Messages reserve(std::size_t n) override {
    progress();
    if (connection_.unsent() > kMostUnsent || connection_.unanswered() > kMostUnanswered) return {};
    if (most_elements_ != 0 && length_ >= most_elements_) {
      if (connection_.unanswered() == 0) Dialect::ask_length(connection_, key_);
      return {};
    }
    return {slots_.data(), stride_, std::min(n, slots_.size() / stride_)};
  }
  void publish(std::size_t n) override {
    push<Dialect>(connection_, key_, {slots_.data(), stride_, n}, pack_, shared_);
    if (stages_ != nullptr) {
      stages_->for_sampled({slots_.data(), stride_, n}, [&](std::uint64_t id) {
        unbrokered_.push_back({replied_ + connection_.unanswered(), id});
      });
    }
    if (most_elements_ != 0) Dialect::ask_length(connection_, key_);
    connection_.flush();
  }
  void progress() override {
    while (const Reply reply = connection_.try_read()) {
      ++replied_;
      // Only replies that count elements are integers; a stream answers additions with ids.
      if (reply->type == REDIS_REPLY_INTEGER) length_ = static_cast<std::size_t>(reply->integer);
    }
    for (; !unbrokered_.empty() && unbrokered_.front().replies <= replied_; unbrokered_.pop_front()) {
      stages_->mark(unbrokered_.front().id, Stage::brokered, now_ns());
    }
  }

 private:
  struct Unbrokered {
    std::uint64_t replies;  ///< that the server must have given until it has said that it has the message
    std::uint64_t id;
  };
  Connection connection_;
  std::string key_;
  std::size_t stride_, pack_, most_elements_, length_ = 0;
  bool shared_;
  std::vector<std::byte> slots_;
  StageClock* stages_;
  std::deque<Unbrokered> unbrokered_;  // sampled messages
  std::uint64_t replied_ = 0;
};

template <class Dialect>
class RedisCollector final : public Collector {
 public:
  RedisCollector(const QueueConfig& config, unsigned index)
      : connection_(config.redis.url),
        reader_(connection_, results_key(config.redis.prefix, index), "", "",
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
  Connection connection_;
  Reader<Dialect> reader_;
  std::size_t stride_;
  std::vector<std::byte> slots_;
  std::size_t filled_ = 0, released_ = 0;
};

/// A worker's end: pops into staging memory of the transfer's kind, pushes results. Two connections, because a blocked
/// pop would hold up every command behind it.
template <class Dialect>
class RedisBroker final : public Broker {
 public:
  RedisBroker(const QueueConfig& config, const std::string& consumer)
      : prefix_(config.redis.prefix),
        shared_(config.redis.shared),
        pack_(pack_of(config.point)),
        source_(config.redis.url),
        sink_(config.redis.url),
        source_id_(std::to_string(source_.command({"CLIENT", "ID"})->integer)),
        reader_(source_, tasks_key(prefix_), kGroup, consumer, std::max<std::size_t>(1, config.point.batch / pack_)),
        acks_(tasks_key(prefix_), kGroup) {
    const auto& transfer = Transfers::instance().get("--transfer", config.point.transfer);
    for (unsigned i = 0; i < transfer.depth(config.point.own) + 1; ++i) {
      staging_.push_back({config.device.allocate_host(config.point.batch * config.in_stride(), transfer.memory),
                          config.device.allocate_host(config.point.batch * config.out_stride(), transfer.memory),
                          {}});
    }
    in_stride_ = config.in_stride();
    out_stride_ = config.out_stride();
  }

  std::optional<Batch> fetch() override {
    if (fetched_ - completed_ == staging_.size() || sink_.unsent() > kMostUnsent) return std::nullopt;
    Staging& staging = staging_[fetched_ % staging_.size()];
    staging.ids.clear();
    const std::size_t n = reader_.read({staging.in.data(), in_stride_, staging.in.size() / in_stride_}, &staging.ids);
    if (n == 0) {
      acks_.done(sink_, staging.ids);  // of elements that held no message: they are done with
      return std::nullopt;
    }
    return Batch{{staging.in.data(), in_stride_, n}, {staging.out.data(), out_stride_, n}, fetched_++};
  }
  void complete(const Batch& batch) override {
    // Results of one producer go in one push; batches mostly hold long runs of each.
    for (std::size_t begin = 0, end = 0; begin < batch.out.count; begin = end) {
      const unsigned producer = producer_of(batch.out.header(begin).id);
      while (end < batch.out.count && producer_of(batch.out.header(end).id) == producer) ++end;
      const Messages run = batch.out.from(begin).first(end - begin);
      push<Dialect>(sink_, results_key(prefix_, producer), {run.base, run.stride, run.count}, pack_, shared_);
    }
    unacked_.push_back({replied_ + sink_.unanswered(), std::move(staging_[batch.tag % staging_.size()].ids)});
    ++completed_;
    progress();
  }
  void progress() override {
    sink_.flush();
    while (const Reply reply = sink_.try_read()) {
      ++replied_;
      acks_.answer(sink_, *reply);
    }
    // Only a result that the server has taken makes its task done: a full server refuses it, but would take the ack.
    for (; !unacked_.empty() && unacked_.front().replies <= replied_; unacked_.pop_front()) {
      acks_.done(sink_, unacked_.front().ids);
    }
    sink_.flush();
  }
  bool finish() override {
    // What is asked for may be waited for by the server: it need not wait to the end. Where this comes too early, it
    // does.
    if (!finishing_) sink_.append_unanswered({"CLIENT", "UNBLOCK", source_id_});
    finishing_ = true;
    const bool nothing_to_come = reader_.finish();
    return nothing_to_come && unacked_.empty() && sink_.unsent() == 0 && sink_.unanswered() == 0;
  }

 private:
  struct Staging {
    Buffer in, out;
    std::vector<std::string> ids;
  };
  std::string prefix_;
  bool shared_;
  std::size_t pack_, in_stride_ = 0, out_stride_ = 0;
  Connection source_, sink_;
  std::string source_id_;
  bool finishing_ = false;
  Reader<Dialect> reader_;
  typename Dialect::Acks acks_;
  struct Unacked {
    std::uint64_t replies;  ///< that the sink must have given until the results are known to be taken
    std::vector<std::string> ids;
  };
  std::vector<Staging> staging_;
  std::deque<Unacked> unacked_;
  std::uint64_t fetched_ = 0, completed_ = 0, replied_ = 0;
};

template <class Dialect>
class RedisQueue final : public Queue {
 public:
  explicit RedisQueue(const QueueConfig& config)
      : config_(with_keys_of_its_own(config)),
        control_(config.redis.url),
        keys_(config_.redis, keys(), config.external_worker ? redis::Keys::among_others : redis::Keys::of_this_run) {
    if (!config.external_worker) {
      for (const std::string& key : keys()) create(key);
      workers_.emplace(config_, config.point.workers, [this](unsigned index) {
        return std::make_unique<RedisBroker<Dialect>>(config_, fmt::format("worker-{}", index));
      });
    }
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
  static QueueConfig with_keys_of_its_own(QueueConfig config) {
    if (!config.external_worker) config.redis.prefix = config.redis.own_prefix;
    return config;
  }
  /// What this queue alone uses: an external worker's tasks may be others' too.
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    if (!config_.external_worker) all.push_back(tasks_key(config_.redis.prefix));
    for (unsigned i = 0; i < config_.point.producers; ++i) all.push_back(results_key(config_.redis.prefix, i));
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
      const std::string tasks = tasks_key(config_.redis.prefix), lists = std::to_string(config_.point.producers);
      control_.command({"EVAL", Dialect::kWithdraw, "1", tasks, lists});
    } catch (const Failure& failure) {
      spdlog::warn("tasks of the failed run may be left in {}: {}", tasks_key(config_.redis.prefix), failure.what());
    }
  }

  QueueConfig config_;
  Connection control_;
  redis::OwnKeys keys_;
  bool failed_ = false;
  std::optional<WorkerPool> workers_;
};

inline std::string fit(Point& point, Device&, const Workload&) {
  const std::size_t pack = pack_of(point);
  return pack <= point.batch ? ""
                             : fmt::format("pack {} needs a batch and a window of at least as many messages", pack);
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
    if (const auto add = limits.floor(Dialect::kAddFloor), take = limits.floor(Dialect::kTakeFloor); add && take) {
      limits.rate(std::string(Dialect::kAddFloor) + "+" + Dialect::kTakeFloor,
                  static_cast<double>(pack_of(bounded.point)) / (2 / *add + 2 / *take));
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
          .axes = own_axes().list(),
          .make = make_queue<RedisQueue<Dialect>>,
          .fit = fit,
          .floors = add_redis_floors,
          .limits = limits,
          .search = {{"pack", {"1", "16", "64"}}, {"workers", {"1", "2", "4"}}},
          .make_broker = [](const QueueConfig& config, const std::string& consumer) -> std::unique_ptr<Broker> {
            Connection control(config.redis.url);
            Dialect::create(control, tasks_key(config.redis.prefix), kGroup);
            return std::make_unique<RedisBroker<Dialect>>(config, consumer);
          }};
}

}  // namespace feedrate::redis_queue
