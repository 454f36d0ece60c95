#include "variants/queues/ring_memory.hpp"

namespace feedrate {
namespace {

/// No work and no way: what was published is at once its own result, in the same slot. What remains is the driver's
/// own cost (making, timing, collecting and checking messages): the limit of anything it can measure.
class NullQueue final : public Queue {
 public:
  explicit NullQueue(const QueueConfig& config) {
    for (unsigned i = 0; i < config.point.producers; ++i) {
      rings_.emplace_back(config.device, HostMemory::pageable, config.in_stride(), 0, ring_capacity(config.point));
    }
  }
  std::unique_ptr<Producer> producer(unsigned index) override { return std::make_unique<In>(rings_[index].view()); }
  std::unique_ptr<Collector> collector(unsigned index) override {
    RingView ring = rings_[index].view();
    ring.out = ring.in;
    ring.out_stride = ring.in_stride;
    return std::make_unique<RingOut>(ring);
  }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

 private:
  struct In final : Producer {
    explicit In(RingView ring) : ring(ring), server(ring) {}
    Messages reserve(std::size_t n) override { return ring.reserve(n); }
    void publish(std::size_t n) override {
      ring.publish(n);
      server.complete(n);
    }
    RingProducer ring;
    RingServer server;
  };
  std::vector<RingMemory> rings_;
};

const QueueRegistration registered("null", {.description = "no work, no way: the driver's own limit",
                                            .delivery = "exactly once in process",
                                            .order = "per producer",
                                            .works = false,
                                            .make = [](const QueueConfig& config) {
                                              return std::make_unique<NullQueue>(config);
                                            }});

}  // namespace
}  // namespace feedrate
