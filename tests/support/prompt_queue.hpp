#pragma once
#include <memory>

#include "variants/feeding/queues/ring_memory.hpp"

namespace feedrate::test {

/// A queue whose producer thread processes messages as it publishes them, so that no result is late. Derived classes
/// can change a message or its result in `before_work` and `after_work`.
class PromptQueue : public Queue {
 public:
  explicit PromptQueue(const QueueConfig& config) : config_(config) {
    for (unsigned i = 0; i < config.point.producers; ++i) {
      rings_.emplace_back(config.device, HostMemory::pageable, config.in_stride(), config.out_stride(),
                          ring_capacity(config.point));
    }
  }
  std::unique_ptr<Producer> producer(unsigned index) override {
    return std::make_unique<In>(*this, rings_[index].view());
  }
  std::unique_ptr<Collector> collector(unsigned index) override {
    return std::make_unique<RingOut>(rings_[index].view());
  }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

 protected:
  virtual void before_work(const Messages&) {}
  virtual void after_work(const Messages& /*result*/) {}

 private:
  struct In final : Producer {
    In(PromptQueue& queue, RingView view) : queue(queue), view(view), ring(view), server(view) {}
    Messages reserve(std::size_t n) override { return ring.reserve(n); }
    void publish(std::size_t n) override {
      for (std::size_t i = 0; i < n; ++i, ++done) {
        const Messages message{view.in_slot(done), view.in_stride, 1}, result{view.out_slot(done), view.out_stride, 1};
        queue.before_work(message);
        queue.config_.workload.run_on_cpu({message.base, result.base, view.in_stride, view.out_stride, 1});
        queue.after_work(result);
      }
      ring.publish(n);
      server.complete(n);
    }
    PromptQueue& queue;
    RingView view;
    RingProducer ring;
    RingServer server;
    std::uint64_t done = 0;
  };

  const QueueConfig config_;
  std::vector<RingMemory> rings_;
};

}  // namespace feedrate::test
