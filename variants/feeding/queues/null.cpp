#include "common/threads/threads.hpp"
#include "variants/feeding/queues/ring_memory.hpp"

namespace feedrate {
namespace {

/// Delivers nothing: only the number of published messages passes from producer to collector. The remaining cost is the
/// load generator's own (making, timing, collecting and comparing messages). This cost limits everything that the
/// generator can measure at a point. The queue uses the same amount of memory as a real queue: each producer writes
/// every byte of its messages into as many slots as a ring in host memory has, and each collector compares every byte
/// of results in the same number of further slots. Large payloads therefore fall out of the caches at the same sizes as
/// with a real queue. The results are written up front and are correct for the first messages, so that comparing takes
/// as long as with correct results; their ids do not match later messages, and the outcome is ignored. The cost of
/// results that another thread writes is part of a real queue's cost.
class NullQueue final : public Queue {
 public:
  explicit NullQueue(const QueueConfig& config) {
    for (unsigned i = 0; i < config.point.producers; ++i) {
      rings_.emplace_back(config.device, HostMemory::pinned, config.in_stride(), config.out_stride(),
                          ring_capacity(config.point));
      answer(config, i);
    }
  }
  std::unique_ptr<Producer> producer(unsigned index) override { return std::make_unique<RingIn>(view_of(index)); }
  std::unique_ptr<Collector> collector(unsigned index) override { return std::make_unique<RingOut>(view_of(index)); }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

 private:
  RingView view_of(unsigned index) const {
    RingView view = rings_[index].view();
    view.completed = view.published;  // publishing a message also completes it
    return view;
  }
  void answer(const QueueConfig& config, unsigned index) const {
    const RingView view = rings_[index].view();
    constexpr std::size_t kPortion = 256;  // slots that a thread prepares at once
    in_parallel((view.capacity + kPortion - 1) / kPortion, [&](std::size_t portion) {
      const std::size_t first = portion * kPortion;
      const Messages results{view.out_slot(first), view.out_stride, std::min(kPortion, view.capacity - first)};
      for (std::size_t i = 0; i < results.count; ++i) results.header(i).id = message_id(index, first + i);
      if (config.answers) config.answers(message_id(index, first), results);
    });
  }

  std::vector<RingMemory> rings_;
};

const QueueRegistration registered("null", {.description = "delivers nothing; measures the load generator's ceiling",
                                            .guarantee = {.delivery = Delivery::none},
                                            .works = false,
                                            .make = make_queue<NullQueue>});

}  // namespace
}  // namespace feedrate
