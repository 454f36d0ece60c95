// A complete queue in one file. No other file names it: `--queue handoff` finds it by the registration at the end.
#include "variants/feeding/queues/ring_memory.hpp"
#include "variants/feeding/worker.hpp"

namespace feedrate {
namespace {

/// The broker from which a worker fetches messages and to which it returns results: one ring, whose slots the transfer
/// uses directly.
struct RingEnd final : Broker {
  RingEnd(RingView ring, std::size_t most) : ring(ring), most(most), server(ring) {}
  std::optional<Batch> fetch() override {  // never waits; may be called again before the batch is complete
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

/// Each producer has its own ring and its own worker.
class Handoff final : public Queue {
 public:
  explicit Handoff(const QueueConfig& config) : batch_(config.point.batch) {  // allocates all memory up front
    const HostMemory memory = Transfers::instance().get("--transfer", config.point.transfer).memory;
    for (unsigned i = 0; i < config.point.producers; ++i) {
      rings_.emplace_back(config.device, memory, config.in_stride(), config.out_stride(), ring_capacity(config.point));
    }
    const auto end = [this](unsigned i) { return std::make_unique<RingEnd>(rings_[i].view(), batch_); };
    workers_ = std::make_unique<WorkerPool>(config, config.point.producers, end);
  }
  // The load generator's ends: one thread uses each, and results go to the collector with their producer's index.
  std::unique_ptr<Producer> producer(unsigned i) override { return std::make_unique<RingIn>(rings_[i].view()); }
  std::unique_ptr<Collector> collector(unsigned i) override { return std::make_unique<RingOut>(rings_[i].view()); }
  void start() override { workers_->start(); }
  void stop(bool drain) override { workers_->stop(drain); }  // drain: serves all published messages first
  void check() override { workers_->check(); }               // rethrows the exception that ended a worker
  Cost cost() const override { return {.host_threads = workers_->size()}; }

 private:
  std::size_t batch_;
  std::vector<RingMemory> rings_;
  std::unique_ptr<WorkerPool> workers_;  // declared after the rings, so that it is destroyed first
};

const QueueRegistration registered("handoff", {.description = "example: a ring and a worker for every producer",
                                               .uses_transfer = true,
                                               .make = make_queue<Handoff>});

}  // namespace
}  // namespace feedrate
