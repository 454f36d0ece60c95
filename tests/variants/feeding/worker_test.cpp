#include "variants/feeding/worker.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

namespace feedrate::test {
namespace {

/// Hands out numbered batches and records the order in which they are completed.
struct Numbered final : Broker {
  Numbered(std::uint64_t batches, bool any_order) : batches(batches), any_order(any_order) {}
  std::optional<Batch> fetch() override {
    if (fetched == batches) return std::nullopt;
    Batch batch{{nullptr, 16, 2}, {nullptr, 16, 2}};
    batch.tag = fetched++;
    return batch;
  }
  void complete(const Batch& batch) override { completed.push_back(batch.tag); }
  bool takes_any_order() const override { return any_order; }
  std::uint64_t batches, fetched = 0;
  bool any_order;
  std::vector<std::uint64_t> completed;
};

/// Finishes batches in groups of three, the last batch of a group first.
struct Backwards final : Transfer {
  bool submit(const Batch& batch) override {
    if (held.size() == 3) return false;
    held.push_back(batch);
    return true;
  }
  std::optional<Batch> poll() override {
    if (held.size() == 3) finishing = true;
    if (!finishing) return std::nullopt;
    const Batch last = held.back();
    held.pop_back();
    finishing = !held.empty();
    return last;
  }
  std::deque<Batch> held;
  bool finishing = false;
};

/// Submits batches in groups of three, and a partial group on flush().
struct Coalescing final : Transfer {
  bool submit(const Batch& batch) override {
    if (held.size() == 3) return false;
    held.push_back(batch);
    if (held.size() == 3) groups.push_back(going = 3);
    return true;
  }
  void flush() override {
    if (going == 0 && !held.empty()) groups.push_back(going = held.size());
  }
  std::optional<Batch> poll() override {
    if (going == 0) return std::nullopt;
    --going;
    const Batch first = held.front();
    held.pop_front();
    return first;
  }
  std::deque<Batch> held;
  std::size_t going = 0;
  std::vector<std::size_t> groups;
};

TEST(Worker, FlushesPartialGroupWhenIdle) {
  Numbered broker(8, false);
  Coalescing transfer;
  Worker worker(broker, transfer);
  std::stop_source stop;
  stop.request_stop();
  worker.run(stop.get_token(), {});
  EXPECT_EQ(broker.completed, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(transfer.groups, (std::vector<std::size_t>{3, 3, 2}));
}

std::vector<std::uint64_t> order_of(bool any_order) {
  Numbered broker(9, any_order);
  Backwards transfer;
  Worker worker(broker, transfer);
  std::stop_source stop;
  stop.request_stop();
  worker.run(stop.get_token(), {});
  EXPECT_EQ(worker.served(), 18u);
  return broker.completed;
}

TEST(Worker, CompletesBatchesInFetchOrder) {
  EXPECT_EQ(order_of(false), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Worker, CompletesBatchesAsTheyFinishIfTheBrokerAllows) {
  EXPECT_EQ(order_of(true), (std::vector<std::uint64_t>{2, 1, 0, 5, 4, 3, 8, 7, 6}));
}

}  // namespace
}  // namespace feedrate::test
