// NVML samples of a real GPU. They need CUDA only for the device's bus address.
#include "experiments/harness/machine/gpu_sample.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "common/device/device.hpp"
#include "experiments/harness/machine/machine_monitor.hpp"

namespace feedrate {
namespace {

class GpuState : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    source = nvml_source(open_device("cuda")->info().pci_bus);
    if (!source) GTEST_SKIP() << "NVML is not available";
  }
  GpuSource source;
};

TEST_F(GpuState, SampleIsPlausible) {
  const auto sample = source(true);
  ASSERT_TRUE(sample);
  ASSERT_TRUE(sample->sm_clock_mhz && sample->sm_clock_limit_mhz && sample->clock_reasons);
  EXPECT_GT(*sample->sm_clock_mhz, 100);
  EXPECT_LE(*sample->sm_clock_mhz, *sample->sm_clock_limit_mhz);
  EXPECT_LT(*sample->sm_clock_limit_mhz, 5000);
  EXPECT_LT(*sample->clock_reasons, 0x1000u);
  ASSERT_TRUE(sample->power_w && sample->temperature_c);
  EXPECT_GT(*sample->power_w, 5);
  EXPECT_LT(*sample->power_w, 3000);
  EXPECT_GT(*sample->temperature_c, 5);
  EXPECT_LT(*sample->temperature_c, 120);
  EXPECT_LE(sample->utilisation.value_or(0), 1);
  EXPECT_FALSE(source(false)->pcie_rx_bytes_per_second);
}

TEST_F(GpuState, MonitorSamplesTheGpu) {
  MachineMonitor monitor(source, 0.25);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const MachineState state = monitor.stop();
  EXPECT_GE(state.samples.size(), 4u);
  EXPECT_LE(state.samples.size(), 6u);
  const auto power = power_w(state);
  ASSERT_TRUE(power);
  EXPECT_GT(*power, 5);
  EXPECT_LT(*power, 3000);
  EXPECT_LT(state.sample_cpu_seconds_max, 0.02);
  RecordProperty("machine", to_json(state).dump());
  std::puts(to_json(state).dump(1).c_str());  // shows the cost of a sample on this machine
}

TEST(GpuStateWithoutGpu, SourceIsEmpty) {
  EXPECT_FALSE(nvml_source(""));
  EXPECT_FALSE(nvml_source("0000:ff:1f.7"));
}

}  // namespace
}  // namespace feedrate
