#include "common/device/polled_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>

namespace feedrate::test {
namespace {

TEST(PolledMemory, EveryPieceIsZeroedAndHasPagesOfItsOwn) {
  const auto device = open_cpu_device();
  PolledMemory memory(*device, 4);
  std::set<std::uintptr_t> pages;
  for (unsigned i = 0; i < 40; ++i) {  // more than there are pages to choose from
    const std::size_t bytes = i % 4 == 3 ? 3 * PolledMemory::kPage : 100;
    std::byte* const piece = i % 2 == 0 ? memory.read_by_device(bytes) : memory.written_by_device(bytes);
    ASSERT_TRUE(std::all_of(piece, piece + bytes, [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(piece, bytes, std::byte{1});
    EXPECT_TRUE(pages.insert(reinterpret_cast<std::uintptr_t>(piece) / PolledMemory::kPage).second);
  }
}

}  // namespace
}  // namespace feedrate::test
