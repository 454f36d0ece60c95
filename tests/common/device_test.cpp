#include "common/device/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace feedrate::test {
namespace {

TEST(CpuDevice, FreshDeviceMemoryHoldsNothingOfAnEarlierRun) {
  const auto device = open_cpu_device();
  for (int run = 0; run < 3; ++run) {
    const Buffer memory = device->allocate_device(100'000);
    const std::byte* const begin = memory.data();
    EXPECT_TRUE(std::all_of(begin, begin + memory.size(), [](std::byte b) { return b == std::byte{kPoison}; }));
    std::fill_n(memory.data(), memory.size(), std::byte{7});  // an answer
  }
}

}  // namespace
}  // namespace feedrate::test
