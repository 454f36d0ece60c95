#include "common/device/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "common/error.hpp"

namespace feedrate::test {
namespace {

using namespace std::chrono_literals;

TEST(CpuDevice, FreshDeviceMemoryHoldsNoDataOfAnEarlierRun) {
  const auto device = open_cpu_device();
  for (int run = 0; run < 3; ++run) {
    const Buffer memory = device->allocate_device(100'000);
    const std::byte* const begin = memory.data();
    EXPECT_TRUE(std::all_of(begin, begin + memory.size(), [](std::byte b) { return b == std::byte{kPoison}; }));
    std::fill_n(memory.data(), memory.size(), std::byte{7});  // the data of an earlier run
  }
}

/// Runs a given function on the CPU.
class Task final : public LaunchedKernel {
 public:
  explicit Task(std::function<void(const BatchView&)> body) : body_(std::move(body)) {}
  void run_on_cpu(const BatchView& batch) const override { body_(batch); }
  void with_cuda_launch(const BatchView&, unsigned, const UseCudaLaunch&) const override {}

 private:
  std::function<void(const BatchView&)> body_;
};

TEST(CpuStream, WaitsOnlyForTheRecordingBeforeTheWait) {
  const auto device = open_cpu_device();
  std::atomic<int> step{0};
  std::atomic<bool> go_on{false};
  const Task slow([&](const BatchView&) {
    while (!go_on) std::this_thread::sleep_for(1ms);
    step = 1;
  });
  std::atomic<int> seen{-1};
  const Task read_step([&](const BatchView&) { seen = step.load(); });
  const auto event = device->event();
  const auto first = device->stream(), second = device->stream();
  EXPECT_TRUE(event->ready());  // an event that was never recorded blocks no stream
  second->wait(*event);
  second->synchronize();
  first->launch(slow, {}, 0);
  first->record(*event);
  second->wait(*event);
  second->launch(read_step, {}, 0);
  EXPECT_FALSE(event->ready());
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(seen, -1);
  // The second stream does not wait for a later recording of the event.
  std::atomic<bool> end{false};
  const Task endless([&](const BatchView&) {
    while (!end) std::this_thread::sleep_for(1ms);
  });
  first->launch(endless, {}, 0);
  first->record(*event);
  go_on = true;
  second->synchronize();
  EXPECT_EQ(seen, 1);
  EXPECT_FALSE(event->ready());
  end = true;
  first->synchronize();
  EXPECT_TRUE(event->ready());
}

TEST(CpuStream, CopiesBatchesAndAllocatesInStreamOrder) {
  const auto device = open_cpu_device();
  const auto stream = device->stream();
  std::array<std::byte, 64> from{}, to{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i);
  std::byte* const near = stream->allocate(64);
  const std::array in{Copy{near + 32, from.data(), 32}, Copy{near, from.data() + 32, 32}};
  const std::array out{Copy{to.data(), near, 64}};
  stream->copy_batch(in, Direction::to_device);
  stream->copy_batch(out, Direction::to_host);
  stream->free(near);
  stream->synchronize();
  EXPECT_TRUE(std::equal(to.begin(), to.begin() + 32, from.begin() + 32));
  EXPECT_TRUE(std::equal(to.begin() + 32, to.end(), from.begin()));
}

TEST(CpuDevice, CapturedWorkRunsInOrderWhenItsGraphIsLaunched) {
  const auto device = open_cpu_device();
  std::vector<std::uint32_t> done;
  const Task note([&](const BatchView& batch) { done.push_back(batch.count); });
  const auto graph = device->capture([&](Stream& captured) {
    for (const std::uint32_t name : {1, 2, 3}) captured.launch(note, {nullptr, nullptr, 0, 0, name}, 0);
    EXPECT_THROW(captured.synchronize(), Failure);
  });
  EXPECT_TRUE(done.empty());
  const auto stream = device->stream();
  graph->launch(*stream);
  graph->launch(*stream);
  stream->synchronize();
  EXPECT_EQ(done, (std::vector<std::uint32_t>{1, 2, 3, 1, 2, 3}));
}

TEST(CpuGraph, RespectsDependenciesChangesAndDisabledNodes) {
  const auto device = open_cpu_device();
  const auto stream = device->stream();
  std::vector<std::uint32_t> done;
  const Task note([&](const BatchView& batch) { done.push_back(batch.count); });
  const auto named = [](std::uint32_t name) { return BatchView{nullptr, nullptr, 0, 0, name}; };
  const auto graph = device->graph();
  const auto a = graph->add(note, named(1), 0, {});
  const auto b = graph->add(note, named(2), 0, std::array{a});
  const auto c = graph->add(note, named(3), 0, {});
  graph->add(note, named(4), 0, std::array{b, c});
  graph->launch(*stream);
  stream->synchronize();
  EXPECT_EQ(done, (std::vector<std::uint32_t>{3, 1, 2, 4}));  // among the ready nodes, the one added last runs first
  done.clear();
  graph->launch(*stream);  // later changes do not affect a launch that is under way
  graph->change(b, named(20));
  graph->set_excluded(c, true);
  graph->launch(*stream);
  graph->set_excluded(c, false);
  graph->launch(*stream);
  stream->synchronize();
  EXPECT_EQ(done, (std::vector<std::uint32_t>{3, 1, 2, 4, 1, 20, 4, 3, 1, 20, 4}));
  EXPECT_THROW(graph->add(note, named(5), 0, {}), Failure);
}

}  // namespace
}  // namespace feedrate::test
