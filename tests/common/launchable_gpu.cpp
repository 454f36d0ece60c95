// Launches, graphs of captured launches, and the resources of compiled kernels, on a real GPU.
#include <gtest/gtest.h>

#include <cstring>

#include "common/device/device.hpp"
#include "kernels/stages/stage_kernel.hpp"

namespace feedrate {
namespace {

class LaunchableOnGpu : public testing::Test {
 protected:
  static constexpr std::uint64_t kWords = 1024;
  void SetUp() override {
    if (const auto reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    device = open_device("cuda");
    id = device->allocate_device(sizeof(std::uint64_t));
    item = device->allocate_device(item_bytes(kWords));
    found = device->allocate_host(item_bytes(kWords), HostMemory::pinned);
    expected.resize(item_bytes(kWords));
    stream = device->stream();
    const std::uint64_t number = 7;
    stream->copy_to_device(id.data(), reinterpret_cast<const std::byte*>(&number), sizeof number);
    stream->synchronize();
    kernel.on(reinterpret_cast<const std::byte*>(&number), expected.data()).on_cpu()();
  }
  bool is_generated() {
    stream->copy_to_host(found.data(), item.data(), item.size());
    stream->synchronize();
    return std::memcmp(found.data(), expected.data(), item.size()) == 0;
  }
  StageKernel kernel{{StageKind::generate, 0, 1, kWords}, 4};
  std::unique_ptr<Device> device;
  Buffer id, item, found;
  std::vector<std::byte> expected;
  std::unique_ptr<Stream> stream;
};

TEST_F(LaunchableOnGpu, WritesTheSameBytesAsTheCpu) {
  EXPECT_FALSE(is_generated());
  stream->launch(kernel.on(id.data(), item.data()));
  EXPECT_TRUE(is_generated());
}

TEST_F(LaunchableOnGpu, CapturedLaunchRunsOnEachGraphLaunch) {
  const auto graph = device->capture([&](Stream& captured) { captured.launch(kernel.on(id.data(), item.data())); });
  stream->synchronize();
  EXPECT_FALSE(is_generated()) << "captured work must not run during the capture";
  for (int i = 0; i < 2; ++i) {
    stream->fill(item.data(), 0, item.size());
    EXPECT_FALSE(is_generated());
    graph->launch(*stream);
    EXPECT_TRUE(is_generated());
  }
}

TEST_F(LaunchableOnGpu, FailedCaptureLeavesTheDeviceUsable) {
  EXPECT_THROW(device->capture([&](Stream&) { throw Failure("planted"); }), Failure);
  stream->launch(kernel.on(id.data(), item.data()));
  EXPECT_TRUE(is_generated());
}

TEST_F(LaunchableOnGpu, CompilerResourcesAreReported) {
  const auto resources = device->resources(kernel.on(id.data(), item.data()));
  ASSERT_TRUE(resources);
  EXPECT_GE(resources->registers, 16u);
  EXPECT_LE(resources->registers, 255u);
  EXPECT_GE(resources->shared_bytes, 8 * sizeof(std::uint64_t)) << "room for the partial sums";
  EXPECT_GE(resources->blocks_per_sm, 1u);
  EXPECT_GE(resources->capability, 80u);
}

}  // namespace
}  // namespace feedrate
