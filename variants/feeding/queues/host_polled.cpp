#include <fmt/format.h>

#include "variants/feeding/queues/ring_memory.hpp"
#include "variants/feeding/worker.hpp"

namespace feedrate {
namespace {

/// The usual in-process design: producers fill rings in host memory, and a worker thread polls the rings, submits
/// batches to a transfer and polls the transfer for completed ones. Only the transfer copies messages: it reads and
/// writes the slots directly.
class HostPolled final : public Queue {
 public:
  explicit HostPolled(const QueueConfig& config)
      : rings_(make_rings(config)), workers_(config, config.point.workers, [&](unsigned index) {
          return std::make_unique<RingBroker>(rings_, index, config);
        }) {}

  std::unique_ptr<Producer> producer(unsigned index) override { return std::make_unique<RingIn>(rings_[index].view()); }
  std::unique_ptr<Collector> collector(unsigned index) override {
    return std::make_unique<RingOut>(rings_[index].view());
  }
  void start() override { workers_.start(); }
  void stop(bool drain) override { workers_.stop(drain); }
  void check() override { workers_.check(); }
  Cost cost() const override { return {.host_threads = workers_.size()}; }
  Choices choices() const override { return workers_.choices(); }

 private:
  /// Worker `index` serves every workers-th ring, in turn.
  class RingBroker final : public Broker {
   public:
    RingBroker(const std::vector<RingMemory>& rings, unsigned index, const QueueConfig& config)
        : batch_(config.point.batch) {
      for (std::size_t r = index; r < rings.size(); r += config.point.workers) {
        views_.push_back(rings[r].view());
        servers_.emplace_back(rings[r].view());
      }
    }
    std::optional<Batch> fetch() override {
      for (std::size_t tried = 0; tried < servers_.size(); ++tried) {
        const std::size_t r = next_++ % servers_.size();
        RingServer& server = servers_[r];
        const RingView& ring = views_[r];
        const auto n = ring.contiguous(server.taken(), std::min<std::uint64_t>(server.waiting(), batch_));
        if (n == 0) continue;
        const Batch batch{
            {ring.in_slot(server.taken()), ring.in_stride, n}, {ring.out_slot(server.taken()), ring.out_stride, n}, r};
        server.take(n);
        return batch;
      }
      return std::nullopt;
    }
    void complete(const Batch& batch) override { servers_[batch.tag].complete(batch.in.count); }

   private:
    std::size_t batch_;
    std::size_t next_ = 0;
    std::vector<RingView> views_;
    std::vector<RingServer> servers_;
  };

  static std::vector<RingMemory> make_rings(const QueueConfig& config) {
    const HostMemory memory = Transfers::instance().get("--transfer", config.point.transfer).memory;
    std::vector<RingMemory> rings;
    for (unsigned i = 0; i < config.point.producers; ++i) {
      rings.emplace_back(config.device, memory, config.in_stride(), config.out_stride(), ring_capacity(config.point));
    }
    return rings;
  }

  std::vector<RingMemory> rings_;
  WorkerPool workers_;
};

std::string why_unsupported_workers(Point& point, Device&, const Workload&) {
  if (point.workers <= point.producers) return "";
  return fmt::format("{} workers are more than the {} producers, which have one ring each", point.workers,
                     point.producers);
}

const QueueRegistration registered("host_polled",
                                   {.description = "in-process ring, polled by a worker that launches kernels",
                                    .uses_transfer = true,
                                    .make = make_queue<HostPolled>,
                                    .why_unsupported = why_unsupported_workers,
                                    .search = {{"workers", {"1", "2", "4"}}}});

}  // namespace
}  // namespace feedrate
