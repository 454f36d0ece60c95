#include "variants/storage/ring_controller.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/storage_files.hpp"
#include "tests/support/temp_dir.hpp"
#include "variants/storage/engine.hpp"

namespace feedrate {
namespace {

using namespace storage;

/// Commands from every registered buffer to the next one: each lies in the buffer in which it begins.
TEST(RingControllerTest, StagingMayBeLargerThanOneRegisteredBuffer) {
  if (const auto reason = Engines::instance().get("", "gpu_rings").unavailable(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  constexpr std::uint32_t kBlock = 65'536, kCount = 7, kEntries = kCount + 1;
  constexpr std::size_t kLargest = 2 * kBlock, kApart = kBlock - 4096;
  const test::TempDir place;
  const File file = test::content_file(place / "file", kCount * kBlock, 5);
  const auto device = open_cpu_device();
  const OpenFiles files({.files = {&file, 1}, .device = *device});
  std::vector<std::byte> staging((kCount + 1) * kBlock);
  std::array<nvme::Command, kEntries> commands{};
  std::array<nvme::CompletionEntry, kEntries> completions{};
  for (std::uint32_t i = 0; i < kCount; ++i) {
    commands[i] = nvme::io_command(nvme::IoOpcode::read, static_cast<std::uint16_t>(i), 1, i * kBlock, kBlock,
                                   reinterpret_cast<std::uint64_t>(staging.data() + i * kApart), 0);
  }
  std::uint32_t tail = 0, head = 0;
  rings::Queue queue;
  queue.submissions = commands.data();
  queue.completions = completions.data();
  queue.tail_doorbell = &tail;
  queue.head_doorbell = &head;
  queue.entries = kEntries;
  // One command at a time, because their blocks overlap.
  RingController controller({.files = files, .queues = {&queue, 1}, .staging = staging, .largest_buffer = kLargest});
  for (std::uint32_t i = 0; i < kCount; ++i) {
    nvme::ring(tail, i + 1);
    while (!nvme::load_state(completions[i]).phase()) {
      ASSERT_NO_THROW(controller.check());
      std::this_thread::yield();
    }
    ASSERT_TRUE(nvme::load_state(completions[i]).status().ok()) << "command " << i;
    std::uint64_t first = 0;
    std::vector<std::byte> block(kBlock);
    std::memcpy(block.data(), staging.data() + i * kApart, kBlock);
    EXPECT_EQ(count_wrong(block.data(), kBlock, 5, i * kBlock, first), 0u) << "command " << i;
  }
}

}  // namespace
}  // namespace feedrate
