#include "experiments/harness/kernels/kernel_timer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kernels/launch.cuh"

namespace feedrate {
namespace {

using Work = KernelLaunch<>;

/// Counts its runs on the CPU device; each takes a millisecond.
struct Counter {
  std::atomic<unsigned> runs{0};
  Work launch() {
    return {nullptr, {}, [this] {
              ++runs;
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }};
  }
};

TEST(KernelTimer, SampleIsTheTimePerLaunch) {
  const auto device = open_cpu_device();
  Counter counter;
  std::vector<std::size_t> numbers;
  const auto samples = time_kernel(*device,
                                   [&](Stream& stream, std::size_t number) {
                                     numbers.push_back(number);
                                     stream.launch(counter.launch());
                                   },
                                   {.seconds = 0, .warmup = 2, .least = 5, .launches = 3});
  ASSERT_EQ(samples.size(), 5u);
  EXPECT_EQ(counter.runs, 7 * 3u) << "the count includes the warm-up";
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i);
  for (const KernelSample& sample : samples) EXPECT_GE(sample.ns, 1e6);
}

TEST(KernelTimer, CapturedLaunchesRunForEachSample) {
  const auto device = open_cpu_device();
  Counter counter;
  unsigned queued = 0;
  const auto samples = time_kernel(*device,
                                   [&](Stream& stream, std::size_t) {
                                     ++queued;
                                     stream.launch(counter.launch());
                                   },
                                   {.seconds = 0, .warmup = 1, .least = 4, .launches = 2, .captured = true});
  EXPECT_EQ(queued, 2u) << "the launches must be captured once";
  EXPECT_EQ(counter.runs, 2 * 6u) << "one preparation, one warm-up, four samples";
  for (const KernelSample& sample : samples) EXPECT_GE(sample.ns, 1e6);
}

TEST(KernelTimer, TimerEndsOnRequest) {
  const auto device = open_cpu_device();
  Counter counter;
  const auto samples = time_kernel(
      *device, [&](Stream& stream, std::size_t) { stream.launch(counter.launch()); }, {.seconds = 600, .warmup = 0}, {},
      [&] { return counter.runs >= 7; });
  EXPECT_EQ(samples.size(), 7u);
}

TEST(KernelTimer, SamplesHaveTheirClockAndPower) {
  const auto device = open_cpu_device();
  Counter counter;
  double clock = 1000;
  const GpuSource gpu = [&](bool) {
    GpuSample sample;
    sample.sm_clock_mhz = clock += 10;
    return sample;
  };
  const auto samples = time_kernel(
      *device, [&](Stream& stream, std::size_t) { stream.launch(counter.launch()); },
      {.seconds = 0, .warmup = 0, .least = 40}, gpu);
  const Json described = describe(samples);
  EXPECT_EQ(described["count"], 40);
  EXPECT_EQ(described["sm_clock_mhz"]["least"], 1010);
  EXPECT_GT(described["sm_clock_mhz"]["greatest"], 1010) << "the GPU must be sampled again after 10 ms";
  EXPECT_FALSE(described.contains("power_w")) << "the power is unknown";
}

TEST(Rotation, BuffersRotateAndExceedTheCache) {
  const auto device = open_cpu_device();
  const Rotation three = Rotation::of(*device, 64, 3);
  EXPECT_EQ(three.at(0).data(), three.at(3).data());
  EXPECT_NE(three.at(0).data(), three.at(1).data());
  const std::size_t cache = device->info().cache;
  const Rotation many(*device, 1 << 20);
  EXPECT_GE(many.size(), 2u);
  EXPECT_GT(many.size() << 20, 2 * cache);
}

/// Samples with readings of the counter at this distance; a negative one stands for none.
std::vector<KernelSample> with_energy(std::uint64_t apart_ms, std::initializer_list<double> readings) {
  std::vector<KernelSample> samples;
  std::uint64_t now_ms = 0;
  for (const double reading : readings) {
    KernelSample& sample = samples.emplace_back();
    now_ms += apart_ms;
    if (reading < 0) continue;
    sample.energy_j = reading;
    sample.energy_at_ns = now_ms * 1'000'000;
  }
  return samples;
}

TEST(KernelTimer, EnergyIsCountedBetweenStepsOfTheCounter) {
  // The counter moves in samples 2, 4 and 7: 30 joules in five samples of three launches.
  const auto readings = {100.0, -1.0, 110.0, 110.0, 125.0, -1.0, 125.0, 140.0, 140.0};
  EXPECT_DOUBLE_EQ(energy_of_launch(with_energy(40, readings), 3).value(), 30.0 / (5 * 3));
  EXPECT_FALSE(energy_of_launch(with_energy(20, readings), 3)) << "100 ms are too short";
  EXPECT_FALSE(energy_of_launch(with_energy(100, {100, 100, 110, 110}), 3)) << "it moved only once";
  EXPECT_FALSE(energy_of_launch(with_energy(100, {-1, -1}), 3)) << "the GPU does not count";
}

TEST(KernelTimer, GpuIsReadWhileKernelsRun) {
  const auto device = open_cpu_device();
  Counter counter;
  double energy = 0;
  const GpuSource source = [&energy](bool) {
    GpuSample sample;
    sample.sm_clock_mhz = 1500;
    sample.energy_j = energy += 5;
    return sample;
  };
  const auto samples = time_kernel(
      *device, [&](Stream& stream, std::size_t) { stream.launch(counter.launch()); },
      {.seconds = 0.4, .warmup = 1, .least = 5}, source);
  for (const KernelSample& sample : samples) EXPECT_EQ(sample.sm_clock_mhz, 1500);
  EXPECT_GT(energy_of_launch(samples, 1).value(), 0);
}

}  // namespace
}  // namespace feedrate
