#include "variants/queues/ring_memory.hpp"

namespace feedrate {
namespace {

/// No work and no way: only the number of published messages passes from producer to collector, each of which writes
/// and reads slots of its own, as it would any queue's. What remains is the driver's own cost (making, timing,
/// collecting and comparing messages): the limit of anything it can measure. The comparison is made and its outcome
/// ignored, since no message travels.
class NullQueue final : public Queue {
 public:
  explicit NullQueue(const QueueConfig& config) : result_bytes_(config.workload.result_bytes(config.point.payload)) {
    for (unsigned i = 0; i < config.point.producers; ++i) {
      rings_.emplace_back(config.device, HostMemory::pinned, config.in_stride(), config.out_stride(),
                          ring_capacity(config.point));
    }
  }
  std::unique_ptr<Producer> producer(unsigned index) override { return std::make_unique<In>(rings_[index].view()); }
  std::unique_ptr<Collector> collector(unsigned index) override {
    return std::make_unique<Out>(rings_[index].view(), index, result_bytes_);
  }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

 private:
  /// Publishing is completing.
  struct In final : Producer {
    explicit In(RingView view) : ring(view), server(view) {}
    Messages reserve(std::size_t n) override { return ring.reserve(n); }
    void publish(std::size_t n) override {
      ring.publish(n);
      server.complete(n);
    }
    RingProducer ring;
    RingServer server;
  };
  struct Out final : Collector {
    Out(RingView view, unsigned producer, std::size_t result_bytes)
        : ring(view), producer(producer), length(static_cast<std::uint32_t>(result_bytes)) {}
    ConstMessages poll(std::size_t n) override {
      const ConstMessages results = ring.poll(n);
      for (std::size_t i = 0; i < results.count; ++i) {
        // The slots are this side's own: nobody else writes them.
        const_cast<Header&>(results.header(i)) = {message_id(producer, collected + i), length, 0};
      }
      return results;
    }
    void release(std::size_t n) override {
      collected += n;
      ring.release(n);
    }
    RingCollector ring;
    unsigned producer;
    std::uint32_t length;
    std::uint64_t collected = 0;
  };
  std::size_t result_bytes_;
  std::vector<RingMemory> rings_;
};

const QueueRegistration registered("null", {.description = "no work, no way: the driver's own limit",
                                            .delivery = "nothing is delivered",
                                            .order = "per producer",
                                            .works = false,
                                            .make = make_queue<NullQueue>});

}  // namespace
}  // namespace feedrate
