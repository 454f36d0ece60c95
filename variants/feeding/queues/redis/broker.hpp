#pragma once
#include <deque>
#include <limits>

#include "common/limited_warnings.hpp"
#include "variants/feeding/queues/redis/ends.hpp"
#include "variants/feeding/queues/redis/once.hpp"
#include "variants/feeding/queues/redis/redelivery.hpp"
#include "variants/feeding/worker.hpp"
#include "variants/feeding/worker_metrics.hpp"

namespace feedrate::redis_queue {

/// The fate of a task, decided by its result.
enum class Verdict { done, failed, retry };

/// A task whose workload answers "not now" is retried until it reaches the maximum number of deliveries.
inline Verdict verdict_of(const Header& result, unsigned attempts, unsigned max_attempts) {
  if ((result.length & kFailed) == 0) return Verdict::done;
  const bool again = (result.length & ~kFailed) == static_cast<std::uint32_t>(Fault::again);
  return again && attempts < max_attempts ? Verdict::retry : Verdict::failed;
}

inline std::string text_of_fault(std::uint32_t code) {
  switch (static_cast<Fault>(code)) {
    case Fault::bad_length:
      return "the workload cannot take this length";
    case Fault::too_long:
      return "its payload or its result is too long";
    case Fault::refused:
      return "the workload rejected it";
    case Fault::again:
      return "the workload asked for another attempt";
    default:
      return fmt::format("failed with code {}", code);
  }
}

/// Whether a queue has messages that must be served alone (see Redelivery).
enum class Suspects {
  none,
  waiting,  ///< on the server
  held,     ///< requested by this worker, or being served
};

/// The broker for one partition of a queue.
class PartBroker : public Broker {
 public:
  virtual Suspects suspects() const = 0;
  /// Whether no batch is in flight and every completed one is acknowledged.
  virtual bool idle() const = 0;
};

/// The worker's end: takes tasks into staging memory of the kind that the transfer needs, and pushes results. It uses
/// two connections, because a blocked read would delay every command behind it; Redelivery has a third.
///
/// A task is acknowledged only after the server has confirmed that it stored the result (or the task itself, for a
/// retry or as a dead letter). A fault in between causes a duplicate, never a loss.
template <class Dialect>
class RedisBroker final : public PartBroker {
 public:
  /// `consumer` is the worker's name; `incarnation` is unique to this run of the worker.
  RedisBroker(const RedisConfig& config, const std::string& consumer, const std::string& incarnation)
      : names_(config.redis.prefix),
        shared_(config.redis.shared),
        results_ms_(redis::milliseconds(config.redis.delivery.results_seconds)),
        metrics_(config.metrics != nullptr ? *config.metrics : own_metrics_),
        pack_(pack_of(config.point)),
        batch_(config.point.batch),
        in_stride_(config.in_stride()),
        out_stride_(config.out_stride()),
        source_(config.redis.url),
        sink_(config.redis.url),
        source_id_(std::to_string(source_.command({"CLIENT", "ID"})->integer)),
        redelivery_(config.redis, consumer, incarnation, Dialect::kKeeps, Dialect::kKind, config.resumed),
        reader_(source_, typename Dialect::Tasks(source_, config, redelivery_),
                std::max<std::size_t>(1, config.point.batch / pack_)),
        acks_(sink_, names_, redelivery_) {
    if (const double window = once_window(config.point); window != 0) {
      once_.emplace(sink_, names_, Dialect::kKind, window, shared_);
    }
    if constexpr (!Dialect::kTrimResults.empty()) {
      if (results_ms_ != "0" && !shared_) trim_results_.emplace(sink_, Dialect::kTrimResults);
    }
    const auto& transfer = Transfers::instance().get("--transfer", config.point.transfer);
    // One allocation for all batches: pinning takes the driver a long time, however small the allocation.
    const std::size_t batches = transfer.depth(config.point) + 1;
    in_ = config.device.allocate_host(batches * batch_ * in_stride_, transfer.memory);
    out_ = config.device.allocate_host(batches * batch_ * out_stride_, transfer.memory);
    staging_.resize(batches);
  }

  std::optional<Batch> fetch() override {
    if (fetched_ - completed_ == staging_.size() || sink_.unsent() > kMaxUnsent) return std::nullopt;
    const std::size_t place = fetched_ % staging_.size();
    Staging& staging = staging_[place];
    staging.taken.clear();
    staging.alone = false;
    const Messages slots{in_.data() + place * batch_ * in_stride_, in_stride_, batch_};
    std::size_t n = 0;
    if (alone_out_) return std::nullopt;
    if (suspects() != Suspects::none) {
      // A suspect may have killed its worker: serve it only when nothing else would be lost with this worker.
      if (!idle()) return std::nullopt;
      n = fetch_suspect(slots, staging);
    } else {
      n = reader_.read(slots, &staging.taken);
    }
    staging.fetched_ns = now_ns();
    if (n == 0) {
      // The elements held no message for the device; they are finished once they are answered.
      settle_without_device(staging);
      return std::nullopt;
    }
    const Messages results{out_.data() + place * batch_ * out_stride_, out_stride_, n};
    return Batch{{slots.base, in_stride_, n}, results, fetched_++};
  }

  void complete(const Batch& batch) override {
    Staging& staging = staging_[batch.tag % staging_.size()];
    const auto& rejected = staging.taken.rejected;
    // Consecutive results for one producer go in one push; batches mostly hold long runs per producer. Rejected tasks
    // are answered in order.
    std::size_t answered = 0, retried = 0;
    for (std::size_t begin = 0, end = 0; begin < batch.out.count; begin = end + retried) {
      for (; answered < rejected.size() && rejected[answered].position <= begin; ++answered) answer(rejected[answered]);
      const std::size_t limit =
          answered < rejected.size() ? std::min(rejected[answered].position, batch.out.count) : batch.out.count;
      const unsigned producer = producer_of(batch.out.header(begin).id);
      retried = 0;
      for (end = begin; end < limit && producer_of(batch.out.header(end).id) == producer; ++end) {
        const Header& result = batch.out.header(end);
        if ((result.length & kFailed) == 0) continue;
        const Verdict verdict =
            verdict_of(result, info_of(batch.in.header(end)).attempts + 1u, redelivery_.max_attempts());
        give_back(batch, staging, end, verdict);
        if (verdict == Verdict::retry) {  // no result yet
          retried = 1;
          break;
        }
      }
      const Messages run = batch.out.from(begin).first(end - begin);
      if (run.count != 0) push_results(producer, {run.base, run.stride, run.count});
    }
    for (; answered < rejected.size(); ++answered) answer(rejected[answered]);
    if (staging.taken.retried) {
      for (std::size_t i = 0; i < batch.in.count; ++i) {
        if (info_of(batch.in.header(i)).attempts != 0 && (batch.out.header(i).length & kFailed) == 0) {
          redelivery_.forget(sink_, batch.in.header(i).id);
        }
      }
    }
    WorkerMetrics::add(metrics_.served, batch.in.count);
    if (staging.alone) WorkerMetrics::add(metrics_.suspects);
    metrics_.add_batch(now_ns() - staging.fetched_ns);
    settle(staging);
    ++completed_;
    progress();
  }

  void progress() override {
    metrics_.alive_ns.store(now_ns(), std::memory_order_relaxed);
    redelivery_.progress();
    sink_.flush();
    while (const redis::Reply reply = sink_.try_read()) {
      ++replied_;
      acks_.answer(sink_, *reply);
    }
    // A task is acknowledged only once its result is stored: a full server rejects the result but accepts the ack.
    for (; !unacked_.empty() && unacked_.front().replies <= replied_; unacked_.pop_front()) {
      if (unacked_.front().alone) {
        redelivery_.release_suspect(sink_);
        alone_out_ = false;
      } else {
        acks_.done(sink_, unacked_.front().ids);
      }
    }
    sink_.flush();
  }

  Suspects suspects() const override {
    if (alone_out_ || redelivery_.holds_suspect()) return Suspects::held;
    return !finishing_ && redelivery_.has_suspects() ? Suspects::waiting : Suspects::none;
  }
  bool idle() const override { return fetched_ == completed_ && unacked_.empty(); }

  bool finish() override {
    // Ends a blocking read on the server early. If UNBLOCK arrives before the read, the read runs to its timeout.
    if (!finishing_) sink_.append_unanswered({"CLIENT", "UNBLOCK", source_id_});
    finishing_ = true;
    const bool reader_finished = reader_.finish();
    return reader_finished && !redelivery_.holds_suspect() && !alone_out_ && unacked_.empty() && sink_.unsent() == 0 &&
           sink_.unanswered() == 0;
  }

 private:
  struct Staging {  ///< the state of one batch
    ClaimedTasks taken;
    bool alone = false;  ///< the batch is a suspect
    std::uint64_t fetched_ns = 0;
  };
  struct Unacked {
    std::uint64_t replies;  ///< number of replies on the sink after which the results are known to be stored
    std::vector<std::string> ids;
    bool alone;
  };

  std::size_t fetch_suspect(Messages slots, Staging& staging) {
    const auto suspect = redelivery_.take_suspect();
    if (!suspect) return 0;
    staging.alone = alone_out_ = true;
    staging.taken.ids.emplace_back();  // so that the suspect is settled even if it is rejected
    std::size_t offset = 0;
    return unpack_tasks(*suspect, offset, slots.first(1), staging.taken, 0);
  }
  void push_results(unsigned producer, const ConstMessages& results) {
    const std::string key = names_.results(producer);
    if (once_) {
      once_->push(sink_, key, results);
    } else {
      Dialect::push_results(sink_, key, results, pack_);
    }
    if constexpr (Dialect::kVanishes) redis::expire(sink_, key, shared_);
    if (results_ms_ != "0" && !shared_) sink_.append_unanswered({"PEXPIRE", key, results_ms_});
    if (trim_results_) trim_results_->append_unanswered(sink_, {key}, {results_ms_});
  }
  /// Returns the task of the batch's i-th message to the server.
  void give_back(const Batch& batch, const Staging& staging, std::size_t i, Verdict verdict) {
    const Header& task = batch.in.header(i);
    const auto& deadlines = staging.taken.deadlines;
    const std::string bytes = encode(task, {i < deadlines.size() ? deadlines[i] : 0},
                                     {reinterpret_cast<const char*>(batch.in.payload(i)), payload_bytes(task)});
    const std::string error = text_of_fault(batch.out.header(i).length & ~kFailed);
    const unsigned attempts = info_of(task).attempts + 1u;
    WorkerMetrics::add(verdict == Verdict::retry ? metrics_.retried : metrics_.buried);
    if (verdict == Verdict::failed) WorkerMetrics::add(metrics_.failed);
    if (verdict == Verdict::retry) {
      redelivery_.retry(sink_, bytes, attempts, error);
    } else {
      redelivery_.bury(sink_, bytes, attempts, error);
    }
  }
  /// Answers a task that never reached the device. Bytes that are not a message cannot be answered.
  void answer(const Rejected& task) {
    unsigned attempts = 1;
    if (task.fault == Fault::none) {
      warnings_.warn(fmt::format("dropped {} bytes: {}; stored as a dead letter", task.bytes.size(), task.why));
    } else {
      const Header result{task.header.id, kFailed | static_cast<std::uint32_t>(task.fault), 0};
      push_results(producer_of(result.id), {reinterpret_cast<const std::byte*>(&result), sizeof result, 1});
      attempts += info_of(task.header).attempts;
      WorkerMetrics::add(metrics_.failed);
    }
    WorkerMetrics::add(metrics_.buried);
    redelivery_.bury(sink_, task.bytes, attempts, task.why);
  }
  /// Settles elements that held no message for the device. To keep the order, they are acknowledged with the last batch
  /// in flight.
  void settle_without_device(Staging& staging) {
    if (fetched_ == completed_) {
      for (const Rejected& task : staging.taken.rejected) answer(task);
      if (!staging.taken.rejected.empty() || !staging.taken.ids.empty()) settle(staging);
      return;
    }
    ClaimedTasks& last = staging_[(fetched_ - 1) % staging_.size()].taken;
    for (Rejected& task : staging.taken.rejected) {
      task.position = std::numeric_limits<std::size_t>::max();  // after all messages of that batch
      last.rejected.push_back(std::move(task));
    }
    last.ids.insert(last.ids.end(), staging.taken.ids.begin(), staging.taken.ids.end());
  }
  /// Schedules the batch for acknowledgement once the server has confirmed all of its results.
  void settle(Staging& staging) {
    unacked_.push_back({replied_ + sink_.unanswered(), std::move(staging.taken.ids), staging.alone});
  }

  KeyNames names_;
  bool shared_;
  std::string results_ms_;
  std::optional<redis::Script> trim_results_;  // empty: taking a result removes it, or results are kept
  WorkerMetrics own_metrics_;                  // used if the config names none
  WorkerMetrics& metrics_;
  std::size_t pack_, batch_, in_stride_, out_stride_;
  redis::Connection source_, sink_;
  std::string source_id_;
  bool finishing_ = false;
  bool alone_out_ = false;  // a suspect is being served
  Redelivery redelivery_;
  Reader<typename Dialect::Tasks> reader_;
  typename Dialect::Acks acks_;
  std::optional<Once> once_;
  LimitedWarnings warnings_;
  Buffer in_, out_;  // the slots of all batches, one batch after another
  std::vector<Staging> staging_;
  std::deque<Unacked> unacked_;
  std::uint64_t fetched_ = 0, completed_ = 0, replied_ = 0;
};

}  // namespace feedrate::redis_queue
