#pragma once
#include <deque>

#include "common/redis/own_keys.hpp"
#include "variants/queue.hpp"
#include "variants/queues/redis/reader.hpp"

/// The ends of a Redis queue that the load generator holds. A Dialect supplies the commands; see queue.hpp.
namespace feedrate::redis_queue {

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

template <class Dialect>
class RedisProducer final : public Producer {
 public:
  explicit RedisProducer(const QueueConfig& config)
      : connection_(config.redis.url),
        key_(KeyNames(config.redis.prefix).tasks()),
        stride_(config.in_stride()),
        pack_(pack_of(config.point)),
        most_elements_(config.point.capacity),
        push_(config),
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
    push_(connection_, key_, {slots_.data(), stride_, n}, pack_);
    if constexpr (Dialect::kVanishes) redis::expire(connection_, key_, shared_);
    if (stages_ != nullptr) {
      stages_->for_sampled({slots_.data(), stride_, n}, [&](std::uint64_t id) {
        unbrokered_.push_back({replied_ + connection_.unanswered(), id});
      });
    }
    if (most_elements_ != 0) Dialect::ask_length(connection_, key_);
    connection_.flush();
  }
  void progress() override {
    while (const redis::Reply reply = connection_.try_read()) {
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
  redis::Connection connection_;
  std::string key_;
  std::size_t stride_, pack_, most_elements_, length_ = 0;
  typename Dialect::Push push_;
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
