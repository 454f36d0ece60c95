// A whole queue is one file like this. Nothing else names it: `--queue handoff` finds the registration at its end.
#include "variants/feeding/queues/ring_memory.hpp"
#include "variants/feeding/worker.hpp"

namespace feedrate {
namespace {

/// What a worker asks for messages and gives results to: one ring, on whose slots the transfer works.
struct RingEnd final : Broker {
  RingEnd(RingView ring, std::size_t most) : ring(ring), most(most), server(ring) {}
  std::optional<Batch> fetch() override {  // never waits; may be called again before the batch comes back
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

/// A ring and a worker of its own for every producer.
class Handoff final : public Queue {
 public:
  explicit Handoff(const QueueConfig& config) : batch_(config.point.batch) {  // allocates all that it will ever need
    const HostMemory memory = Transfers::instance().get("--transfer", config.point.transfer).memory;
    for (unsigned i = 0; i < config.point.producers; ++i) {
      rings_.emplace_back(config.device, memory, config.in_stride(), config.out_stride(), ring_capacity(config.point));
    }
    const auto end = [this](unsigned i) { return std::make_unique<RingEnd>(rings_[i].view(), batch_); };
    workers_ = std::make_unique<WorkerPool>(config, config.point.producers, end);
  }
  // The driver's ends: one thread uses each, and results return to the collector of the producer's index.
  std::unique_ptr<Producer> producer(unsigned i) override { return std::make_unique<RingIn>(rings_[i].view()); }
  std::unique_ptr<Collector> collector(unsigned i) override { return std::make_unique<RingOut>(rings_[i].view()); }
  void start() override { workers_->start(); }
  void stop(bool drain) override { workers_->stop(drain); }  // drain: first serves what was published
  void check() override { workers_->check(); }               // throws what ended a worker
  Cost cost() const override { return {.host_threads = workers_->size()}; }

 private:
  std::size_t batch_;
  std::vector<RingMemory> rings_;
  std::unique_ptr<WorkerPool> workers_;  // after the rings, so that it ends first
};

const QueueRegistration registered("handoff", {.description = "example: a ring and a worker for every producer",
                                               .uses_transfer = true,
                                               .make = make_queue<Handoff>});

}  // namespace
}  // namespace feedrate
