#include "common/device/polled_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "common/error.hpp"

namespace feedrate::test {
namespace {

constexpr std::size_t kPage = PolledMemory::kPage;

/// A device with nothing but memory; it reads every other page slowly.
class TwoKindsOfPages final : public Device {
 public:
  static bool is_near(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) / kPage % 2 == 0; }
  Buffer allocate_host(std::size_t bytes, HostMemory memory) override { return cpu_->allocate_host(bytes, memory); }
  std::vector<std::uint32_t> page_read_cycles(std::span<std::byte> pinned, std::size_t page_bytes) override {
    std::vector<std::uint32_t> cycles;
    for (std::size_t at = 0; at < pinned.size(); at += page_bytes) {
      cycles.push_back(is_near(pinned.data() + at) ? 2000 : 2300);
    }
    return cycles;
  }
  std::string_view kind() const override { return "cpu"; }
  DeviceInfo info() const override { return cpu_->info(); }
  Buffer allocate_device(std::size_t, Fresh) override { throw Failure("unused"); }
  Buffer pin(std::byte*, std::size_t, Access) override { throw Failure("unused"); }
  std::unique_ptr<Stream> stream() override { throw Failure("unused"); }
  std::unique_ptr<Event> event(bool) override { throw Failure("unused"); }
  std::unique_ptr<Graph> graph() override { throw Failure("unused"); }
  std::unique_ptr<Graph> capture(const std::function<void(Stream&)>&) override { throw Failure("unused"); }
  std::optional<KernelResources> resources(const Launchable&) override { return std::nullopt; }
  bool copies_in_batches() const override { return false; }
  std::string enable_peer_access(Device&) override { return "unused"; }
  ClockReading read_clock() override { throw Failure("unused"); }
  unsigned max_lanes(const Kernel&, const ResidentShape&) override { return 0; }
  std::unique_ptr<Resident> start_resident(const Kernel&, std::span<const LaneView>, const ResidentShape&) override {
    throw Failure("unused");
  }

 private:
  std::unique_ptr<Device> cpu_ = open_cpu_device();
};

TEST(PolledMemory, DeviceReadsNearPagesAndWritesFarOnes) {
  TwoKindsOfPages device;
  PolledMemory memory(device, 8);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_TRUE(TwoKindsOfPages::is_near(memory.read_by_device(kPage)));
    EXPECT_FALSE(TwoKindsOfPages::is_near(memory.written_by_device(64)));
  }
}

TEST(PolledMemory, EveryPieceIsZeroedAndHasPagesOfItsOwn) {
  const auto device = open_cpu_device();
  PolledMemory memory(*device, 4);
  std::set<std::uintptr_t> pages;
  for (unsigned i = 0; i < 40; ++i) {  // more than there are pages to choose from
    const std::size_t bytes = i % 4 == 3 ? 3 * kPage : 100;
    std::byte* const piece = i % 2 == 0 ? memory.read_by_device(bytes) : memory.written_by_device(bytes);
    ASSERT_TRUE(std::all_of(piece, piece + bytes, [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(piece, bytes, std::byte{1});
    for (std::size_t at = 0; at < bytes; at += kPage) {
      EXPECT_TRUE(pages.insert((reinterpret_cast<std::uintptr_t>(piece) + at) / kPage).second);
    }
  }
}

}  // namespace
}  // namespace feedrate::test
