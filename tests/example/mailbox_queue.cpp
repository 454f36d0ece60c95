// A broker in one file, with its own axis, limit and guarantee. No other file names any of these.
#include <cstring>
#include <mutex>

#include "variants/feeding/queues/ring_memory.hpp"
#include "variants/feeding/worker.hpp"

namespace feedrate {
namespace {

/// The queue's axis: `--resend-every 100` delivers every hundredth result twice, like a broker that receives an
/// acknowledgement too late.
struct Options {
  unsigned resend_every = 0;
};
const Axes<Options>& own_axes() {
  static const auto kAxes = Axes<Options>().number("resend-every", &Options::resend_every, {0, 1e6},
                                                   "deliver every n-th result twice; 0 = none");
  return kAxes;
}

struct MailboxBroker final : Broker {
  MailboxBroker(RingView ring, std::size_t most) : ring(ring), most(most), server(ring) {}
  std::optional<Batch> fetch() override {
    const std::uint64_t first = server.taken();
    const std::uint64_t n = ring.contiguous(first, std::min<std::uint64_t>(server.waiting(), most));
    if (n == 0) return std::nullopt;
    server.take(n);
    return Batch{{ring.in_slot(first), ring.in_stride, n}, {ring.out_slot(first), ring.out_stride, n}};
  }
  void complete(const Batch& batch) override { server.complete(batch.in.count); }
  RingView ring;
  std::size_t most;
  RingServer server;
};

/// Delivers results, every n-th of them twice.
class Resending final : public Collector {
 public:
  Resending(RingView view, unsigned every) : ring_(view), every_(every), copy_(view.out_stride) {}
  ConstMessages poll(std::size_t n) override {
    if (again_) return {copy_.data(), copy_.size(), 1};
    return ring_.poll(every_ == 0 ? n : 1);
  }
  void release(std::size_t n) override {
    if (n == 0) return;
    if (again_) {
      again_ = false;
      return;
    }
    if (every_ != 0 && ++count_ % every_ == 0) {
      std::memcpy(copy_.data(), ring_.poll(1).base, copy_.size());
      again_ = true;
    }
    ring_.release(n);
  }

 private:
  RingCollector ring_;
  std::uint64_t every_, count_ = 0;
  std::vector<std::byte> copy_;
  bool again_ = false;
};

class Mailbox final : public Queue {
 public:
  explicit Mailbox(const QueueConfig& config) : options_(own_axes().of(config.point.own)) {
    const HostMemory memory = Transfers::instance().get("--transfer", config.point.transfer).memory;
    for (unsigned i = 0; i < config.point.producers; ++i) {
      rings_.emplace_back(config.device, memory, config.in_stride(), config.out_stride(), ring_capacity(config.point));
    }
    const auto end = [this, &config](unsigned i) {
      return std::make_unique<MailboxBroker>(rings_[i].view(), config.point.batch);
    };
    workers_ = std::make_unique<WorkerPool>(config, config.point.producers, end);
  }
  std::unique_ptr<Producer> producer(unsigned i) override { return std::make_unique<RingIn>(rings_[i].view()); }
  std::unique_ptr<Collector> collector(unsigned i) override {
    return std::make_unique<Resending>(rings_[i].view(), options_.resend_every);
  }
  void start() override { workers_->start(); }
  void stop(bool drain) override { workers_->stop(drain); }
  void check() override { workers_->check(); }
  Cost cost() const override { return {.host_threads = workers_->size()}; }

 private:
  Options options_;
  std::vector<RingMemory> rings_;
  std::unique_ptr<WorkerPool> workers_;
};

/// The queue's limit: how many times per second a free mutex can be locked.
void add_limits(LimitList& limits) {
  limits.add({"mailbox_locks_per_second", Quantity::operations_per_second, {}, "locks of a free mutex"}, [] {
    std::mutex mutex;
    return per_second(0.01, [&] { const std::lock_guard lock(mutex); });
  });
}

const QueueRegistration registered("mailbox", {.description = "example: a broker that may deliver a result twice",
                                               .guarantee = {.delivery = Delivery::at_least_once},
                                               .uses_transfer = true,
                                               .axes = own_axes().list(),
                                               .make = make_queue<Mailbox>,
                                               .limits = add_limits,
                                               .bounds = [](const BoundedPoint&, Bounds& bounds) {
                                                 bounds.rate(ceiling_of("mailbox_locks_per_second"));
                                               }});

}  // namespace
}  // namespace feedrate
