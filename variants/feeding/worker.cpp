#include "variants/feeding/worker.hpp"

#include "common/clock.hpp"
#include "common/nvtx_range.hpp"
#include "common/threads/threads.hpp"

namespace feedrate {

void Worker::run(const std::stop_token& stop, const std::stop_token& abandon) {
  Backoff backoff;
  std::optional<Batch> waiting;
  std::uint64_t out = 0;
  while (!abandon.stop_requested()) {
    bool worked = false;
    while (const auto finished = transfer_.poll()) {
      const NvtxRange range("complete");
      note_finished(*finished);
      hand_back(*finished);
      --out;
      worked = true;
    }
    broker_.progress();
    // Call finish() before fetch(): remaining batches are fetched below.
    const bool finished = stop.stop_requested() && broker_.finish();
    if (!waiting) {
      waiting = broker_.fetch();
      if (waiting) {
        waiting->order = fetched_++;
        note_fetched(*waiting);
      }
    }
    if (waiting) {
      const NvtxRange range("submit");
      if (transfer_.submit(*waiting)) {
        waiting.reset();
        ++out;
        worked = true;
      }
    } else if (finished && out == 0) {
      return;
    } else {
      transfer_.flush();
    }
    worked ? backoff.reset() : backoff.wait();
  }
}

void Worker::hand_back(const Batch& batch) {
  if (broker_.takes_any_order()) return complete(batch);
  if (batch.order != completed_) {
    early_.emplace(batch.order, batch);
    return;
  }
  complete(batch);
  for (auto next = early_.begin(); next != early_.end() && next->first == completed_; next = early_.erase(next)) {
    complete(next->second);
  }
}

void Worker::complete(const Batch& batch) {
  broker_.complete(batch);
  served_ += batch.in.count;
  ++completed_;
}

void Worker::note_fetched(Batch& batch) {
  if (stages_ == nullptr) return;
  std::uint64_t now = 0;
  stages_->for_sampled(batch.in, [&](std::uint64_t id) {
    if (now == 0) now = now_ns();
    stages_->mark(id, Stage::dequeued, now);
  });
  batch.timed = now != 0;
  if (batch.timed) batch.recorder = stages_->recorder();
}

void Worker::note_finished(const Batch& batch) {
  if (!batch.timed) return;
  const std::uint64_t now = now_ns();
  stages_->for_sampled(batch.in, [&](std::uint64_t id) {
    stages_->mark(id, Stage::copied_in, batch.copied_in);
    stages_->mark(id, Stage::copied_out, batch.copied_out);
    stages_->mark(id, Stage::returned, now);
  });
}

TransferConfig transfer_config(const QueueConfig& config) {
  return {config.device,      config.workload,  config.point.batch, config.in_stride(), config.out_stride(),
          config.point.block, config.point.own, config.limits,      &config.point};
}

WorkerPool::WorkerPool(const QueueConfig& config, unsigned workers, const MakeBroker& make)
    : device_(config.device), stages_(config.stages) {
  const auto& entry = Transfers::instance().get("--transfer", config.point.transfer);
  for (unsigned i = 0; i < workers; ++i) members_.push_back({make(i), entry.make(transfer_config(config))});
}

void WorkerPool::start() {
  for (auto& member : members_) {
    threads_.emplace_back([this, &member] {
      try {
        device_.use_in_this_thread();
        Worker(*member.broker, *member.transfer, stages_).run(stop_.get_token(), abandon_.get_token());
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
    });
  }
}

void WorkerPool::stop(bool drain) {
  if (!drain) abandon_.request_stop();
  stop_.request_stop();
  threads_.clear();
}

Choices WorkerPool::choices() const { return members_.empty() ? Choices{} : members_.front().transfer->choices(); }

void WorkerPool::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace feedrate
