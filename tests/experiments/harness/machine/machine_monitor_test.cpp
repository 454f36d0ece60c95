#include "experiments/harness/machine/machine_monitor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <set>

#include "common/clock.hpp"

namespace feedrate {
namespace {

using namespace std::chrono_literals;

/// A GPU that records which thread samples it and with which argument; each sample takes `busy`. One thread may sample,
/// and another may read the records after the first has ended.
struct FakeGpu {
  std::chrono::milliseconds busy{0};
  std::atomic<int> asked{0};
  std::set<std::thread::id> threads = {};
  std::vector<bool> with_pcie = {};

  std::optional<GpuSample> operator()(bool pcie) {
    threads.insert(std::this_thread::get_id());
    with_pcie.push_back(pcie);
    GpuSample sample;
    sample.energy_j = 100.0 * ++asked;
    std::this_thread::sleep_for(busy);
    if (pcie) sample.pcie_rx_bytes_per_second = sample.pcie_tx_bytes_per_second = 1e9;
    return sample;
  }
  GpuSource source() {
    return [this](bool pcie) { return (*this)(pcie); };
  }
};

void await(const std::atomic<int>& count, int enough) {
  while (count < enough) std::this_thread::sleep_for(1ms);
}

TEST(MachineMonitor, ShortPhaseIsSampledAtBothEnds) {
  FakeGpu gpu;
  const auto begin = now_ns();
  MachineMonitor monitor(gpu.source());
  await(gpu.asked, 1);
  std::this_thread::sleep_for(20ms);
  const MachineState state = monitor.stop();
  const double whole = 1e-9 * static_cast<double>(now_ns() - begin);
  ASSERT_EQ(state.samples.size(), 2u);
  EXPECT_GE(state.samples[1].t, state.samples[0].t + 0.01);
  EXPECT_LE(state.samples[1].t, whole);
  EXPECT_LE(state.host.seconds, whole);
  EXPECT_GE(state.host.seconds, 0.02);
  EXPECT_EQ(energy_j(state), 100.0);
}

TEST(MachineMonitor, MonitorStopsAtOnceAtAnyTime) {
  for (int i = 0; i < 200; ++i) {
    FakeGpu gpu;
    MachineMonitor monitor(gpu.source());
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20 * i));
    EXPECT_EQ(monitor.stop().samples.size(), 2u);
  }
}

TEST(MachineMonitor, StopDoesNotWaitForThePeriod) {
  FakeGpu gpu;
  const auto begin = now_ns();
  MachineMonitor(gpu.source(), 1000).stop();
  { const MachineMonitor dropped(gpu.source(), 1000); }
  EXPECT_LT(now_ns() - begin, 5'000'000'000u);
}

TEST(MachineMonitor, SeparateThreadSamplesEveryPeriod) {
  FakeGpu gpu;
  MachineMonitor monitor(gpu.source(), 0.02);
  await(gpu.asked, 6);
  const MachineState state = monitor.stop();
  ASSERT_GE(state.samples.size(), 7u);
  EXPECT_GE(state.samples[5].t, 0.1 - 0.001);  // no more often than requested
  EXPECT_EQ(gpu.threads.size(), 1u);
  EXPECT_FALSE(gpu.threads.contains(std::this_thread::get_id()));
  EXPECT_EQ(static_cast<std::size_t>(gpu.asked), state.samples.size());
}

TEST(MachineMonitor, TrafficIsMeasuredOnlyDuringTheLoad) {
  FakeGpu gpu{.busy = 300ms};
  MachineMonitor monitor(gpu.source(), 1000);
  await(gpu.asked, 1);
  const MachineState cut = monitor.stop();  // during the first sample
  EXPECT_EQ(gpu.with_pcie, (std::vector<bool>{true, false}));
  EXPECT_FALSE(cut.samples.at(0).gpu.pcie_rx_bytes_per_second);
  EXPECT_FALSE(cut.samples.at(0).gpu.pcie_tx_bytes_per_second);

  FakeGpu quick;
  MachineMonitor whole(quick.source(), 1000);
  await(quick.asked, 1);
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(whole.stop().samples.at(0).gpu.pcie_rx_bytes_per_second);
}

TEST(MachineMonitor, CostOfTheMostExpensiveSampleIsRecorded) {
  FakeGpu gpu{.busy = 30ms};
  MachineMonitor monitor(gpu.source());
  await(gpu.asked, 1);
  const MachineState state = monitor.stop();
  EXPECT_GE(state.sample_cost_seconds_max, 0.03);
  EXPECT_GT(state.sample_cpu_seconds_max, 0);
  EXPECT_LT(state.sample_cpu_seconds_max, 0.02);  // a sleeping sample uses no CPU time
}

TEST(MachineMonitor, MonitorWorksWithoutAGpu) {
  MachineMonitor none;
  EXPECT_TRUE(none.stop().samples.empty());
  MachineMonitor lost([](bool) -> std::optional<GpuSample> { return std::nullopt; });  // the GPU fell off the bus
  EXPECT_TRUE(lost.stop().samples.empty());
}

TEST(MachineMonitor, MonitorWorksWithoutProc) {
  MachineMonitor monitor({}, 1, "/nowhere");
  std::this_thread::sleep_for(100ms);
  const MachineState state = monitor.stop();
  EXPECT_TRUE(state.host.cores.empty());
  EXPECT_GT(state.host.seconds, 0.09);
  EXPECT_TRUE(disturbances(state).empty());
}

TEST(MachineMonitor, ConcurrentStopsReturnTheSameState) {
  FakeGpu gpu;
  MachineMonitor monitor(gpu.source(), 0.01);
  await(gpu.asked, 2);
  std::vector<MachineState> states(4);
  {
    std::vector<std::jthread> stoppers;
    stoppers.reserve(states.size());
    for (auto& state : states) stoppers.emplace_back([&] { state = monitor.stop(); });
  }
  const Json first = to_json(states.front());
  for (const auto& state : states) EXPECT_EQ(to_json(state), first);
  EXPECT_EQ(to_json(monitor.stop()), first);
  EXPECT_EQ(static_cast<std::size_t>(gpu.asked), states.front().samples.size());
}

TEST(MachineMonitor, BusyCoreIsMeasured) {
  MachineMonitor monitor;
  double worked = 0;  // CPU seconds of the loop, whose wall time is longer on a crowded machine
  std::jthread([&] {
    for (timespec cpu{}; worked < 0.5;
         worked = static_cast<double>(cpu.tv_sec) + 1e-9 * static_cast<double>(cpu.tv_nsec))
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  }).join();
  const MachineState state = monitor.stop();
  const HostUse& host = state.host;
  EXPECT_NEAR(host.own_cores * host.seconds, worked, 0.1);
  if (host.cores.empty()) GTEST_SKIP() << "this system does not report the time of its cores";
  EXPECT_GT(host.busy_cores(), host.own_cores - 0.15);
  EXPECT_LE(host.busy_cores(), static_cast<double>(host.cores.size()));
  EXPECT_GT(host.system_switches, 0u);
  EXPECT_LT(state.sample_cpu_seconds_max, 0.02);
}

}  // namespace
}  // namespace feedrate
