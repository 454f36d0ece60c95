// Where a GPU reads and writes what it polls.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/device/polled_memory.hpp"

namespace feedrate {
namespace {

TEST(PolledMemoryOnGpu, DeviceReadsNearPagesAndWritesFarOnes) {
  if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const auto device = open_device("cuda");
  PolledMemory memory(*device, 4);
  std::byte* const pieces[] = {memory.read_by_device(64), memory.read_by_device(PolledMemory::kPage),
                               memory.written_by_device(64), memory.written_by_device(PolledMemory::kPage)};
  std::uint32_t cycles[std::size(pieces)];
  for (std::size_t i = 0; i < std::size(pieces); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces[i]) % PolledMemory::kPage, 0u);
    cycles[i] = device->page_read_cycles({pieces[i], PolledMemory::kPage}, PolledMemory::kPage).at(0);
    EXPECT_GT(cycles[i], 0u);
  }
  const auto near = std::max(cycles[0], cycles[1]), far = std::min(cycles[2], cycles[3]);
  // Less than an L2 hit: the pages of this machine are alike, and any of them will do.
  constexpr std::uint32_t kAlike = 100;
  if (std::ranges::max(cycles) - std::ranges::min(cycles) > kAlike) {
    EXPECT_LT(near, far);
  }
}

}  // namespace
}  // namespace feedrate
