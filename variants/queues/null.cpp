#include "variants/queues/ring_memory.hpp"

namespace feedrate {
namespace {

/// Delivers nothing: only the number of published messages passes from producer to collector. Each writes and reads a
/// batch of slots of its own again and again, which stay in its core's caches; what a queue's slots cost beyond that is
/// the queue's. What remains is the driver's own cost (making, timing, collecting and comparing messages): the limit of
/// anything it can measure. Results' ids say nothing, as no message travels; they are compared and the outcome ignored.
class NullQueue final : public Queue {
 public:
  explicit NullQueue(const QueueConfig& config) {
    for (unsigned i = 0; i < config.point.producers; ++i) flows_.push_back(std::make_unique<Flow>(config));
  }
  std::unique_ptr<Producer> producer(unsigned index) override { return std::make_unique<In>(*flows_[index]); }
  std::unique_ptr<Collector> collector(unsigned index) override { return std::make_unique<Out>(*flows_[index]); }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

 private:
  struct Flow {
    explicit Flow(const QueueConfig& config)
        : batch(config.point.batch),
          in(config.device.allocate_host(batch * config.in_stride(), HostMemory::pinned)),
          out(config.device.allocate_host(batch * config.out_stride(), HostMemory::pinned)) {
      view.published = view.completed = &cursors.published.value;  // publishing is completing
      view.released = &cursors.released.value;
      view.in = in.data(), view.out = out.data();
      view.in_stride = static_cast<std::uint32_t>(config.in_stride());
      view.out_stride = static_cast<std::uint32_t>(config.out_stride());
      view.capacity = std::bit_ceil(std::max<std::size_t>(ring_capacity(config.point), 1));
      // Ids that count up, as of most queues: they are the cheapest to check.
      const Messages results{view.out, view.out_stride, batch};
      for (std::size_t i = 0; i < batch; ++i) results.header(i).id = i;
    }
    std::size_t batch;
    RingCursors cursors{};
    Buffer in, out;  // a batch of slots each
    RingView view;
  };
  struct In final : Producer {
    explicit In(const Flow& flow) : flow(flow), room(flow.view) {}
    Messages reserve(std::size_t n) override {
      return {flow.view.in, flow.view.in_stride, room.room(std::min(n, flow.batch))};
    }
    void publish(std::size_t n) override { room.publish(n); }
    const Flow& flow;
    BasicRingRoom<> room;
  };
  struct Out final : Collector {
    explicit Out(const Flow& flow) : flow(flow), ring(flow.view) {}
    ConstMessages poll(std::size_t n) override {
      return {flow.view.out, flow.view.out_stride, ring.poll(std::min(n, flow.batch)).count};
    }
    void release(std::size_t n) override { ring.release(n); }
    const Flow& flow;
    RingCollector ring;
  };
  std::vector<std::unique_ptr<Flow>> flows_;
};

const QueueRegistration registered("null", {.description = "delivers nothing; measures the load generator's ceiling",
                                            .delivery = Delivery::none,
                                            .order = "per producer",
                                            .works = false,
                                            .make = make_queue<NullQueue>});

}  // namespace
}  // namespace feedrate
