#include <gtest/gtest.h>

#include <vector>

#include "common/clock.hpp"
#include "experiments/feeding/flow.hpp"
#include "kernels/workload.hpp"

namespace feedrate::test {
namespace {

constexpr std::size_t kPayload = 64, kSlots = 1024;

/// Has room for every message and records the number of messages per publish. `results`: number of results that are
/// collected whenever the sender has nothing to send.
class RecordingQueue final : public Queue {
 public:
  explicit RecordingQueue(std::uint64_t results = 0) : results_(results) {}
  std::unique_ptr<Producer> producer(unsigned) override { return std::make_unique<In>(*this); }
  std::unique_ptr<Collector> collector(unsigned) override { return nullptr; }
  void start() override {}
  void stop(bool) override {}
  Cost cost() const override { return {}; }

  std::vector<std::size_t> published;
  Flow* flow = nullptr;
  std::atomic<bool>* stop_after_publish = nullptr;

 private:
  struct In final : Producer {
    explicit In(RecordingQueue& queue) : queue(queue), slots(kSlots * stride_of(kPayload)) {}
    Messages reserve(std::size_t n) override { return {slots.data(), stride_of(kPayload), std::min(n, kSlots)}; }
    void publish(std::size_t n) override {
      queue.published.push_back(n);
      if (queue.stop_after_publish != nullptr) *queue.stop_after_publish = true;
    }
    void progress() override {
      if (queue.results_ == 0) return;
      const std::uint64_t received = std::min(queue.flow->received + queue.results_, queue.flow->sent.load());
      queue.flow->received = received;
      queue.flow->lowest_missing = received;
    }
    RecordingQueue& queue;
    std::vector<std::byte> slots;
  };
  std::uint64_t results_;
};

class BatchTimeout : public testing::Test {
 protected:
  BatchTimeout() {
    point.payload = kPayload;
    point.batch = 16;
    point.window = 64;
  }
  std::vector<std::size_t> closed(std::uint64_t timeout_us, std::uint64_t messages) {
    point.batch_timeout_us = timeout_us;
    RecordingQueue queue(5);
    Flow flow(0, point, queue);
    queue.flow = &flow;
    const std::uint64_t began = now_ns();
    send_closed(flow, {point, *workload, 1, true}, {.messages = messages}, stop);
    took_ns = now_ns() - began;
    return queue.published;
  }
  /// Sends messages that are due at these times, in microseconds after the start.
  std::vector<std::size_t> open(std::uint64_t timeout_us, const std::vector<std::uint64_t>& due_us,
                                bool only_the_first_batch = false) {
    point.batch_timeout_us = timeout_us;
    point.window = 1024;
    RecordingQueue queue;
    if (only_the_first_batch) queue.stop_after_publish = &stop;
    Flow flow(0, point, queue);
    queue.flow = &flow;
    Schedule schedule;
    for (const std::uint64_t us : due_us) schedule.due_ns.push_back(us * 1000);
    flow.begin(&schedule);
    flow.start = now_ns();
    const std::uint64_t began = now_ns();
    send_open(flow, {point, *workload, 1, true}, {.schedule = &schedule}, stop);
    took_ns = now_ns() - began;
    own_lag_ns = flow.own_lag.quantile(0.5);
    lag_ns = flow.send_lag.quantile(0.5);
    return queue.published;
  }

  Point point;
  std::atomic<bool> stop{false};
  std::uint64_t took_ns = 0, own_lag_ns = 0, lag_ns = 0;
  std::unique_ptr<Workload> workload = Workloads::instance().get("--workload", "echo").make({});
};

TEST_F(BatchTimeout, ClosedLoadHoldsBackPartialBatches) {
  const auto at_once = closed(0, 160);
  EXPECT_TRUE(std::ranges::any_of(at_once, [](std::size_t n) { return n < 16; }));
  EXPECT_EQ(closed(20'000'000, 160), std::vector<std::size_t>(10, 16));
  EXPECT_LT(took_ns, 20'000'000'000) << "a full batch was held back";
  EXPECT_EQ(closed(20'000'000, 40), (std::vector<std::size_t>{16, 16, 8}))
      << "the last messages must not wait for others";
}

TEST_F(BatchTimeout, OpenLoadLetsBatchesFill) {
  std::vector<std::uint64_t> due_us;
  for (std::uint64_t i = 0; i < 40; ++i) due_us.push_back(200 * i);
  // The messages are late as intended, which is not the generator's fault. On a busy machine the thread may also be
  // late for lack of a core, so several attempts are allowed.
  for (int attempt = 0; attempt == 0 || (attempt < 50 && own_lag_ns >= lag_ns / 2); ++attempt) {
    EXPECT_EQ(open(20'000'000, due_us), (std::vector<std::size_t>{16, 16, 8}));
    EXPECT_LT(took_ns, 20'000'000'000) << "a full batch was held back";
    EXPECT_GT(lag_ns, 500'000);
  }
  EXPECT_LT(own_lag_ns, lag_ns / 2);
}

TEST_F(BatchTimeout, OpenLoadSendsABatchOnceItsFirstMessageIsOldEnough) {
  // Eight messages are due now, and the next one in a minute, which would end the wait for a full batch.
  std::vector<std::uint64_t> due_us(8, 0);
  due_us.push_back(60'000'000);
  EXPECT_EQ(open(3'000, due_us, true), std::vector<std::size_t>{8});
  EXPECT_GE(lag_ns, 3'000'000) << "no message was held back";
  EXPECT_LT(took_ns, 60'000'000'000) << "the messages were held back for a full batch";
}

}  // namespace
}  // namespace feedrate::test
