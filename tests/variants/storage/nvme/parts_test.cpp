#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "common/error.hpp"
#include "variants/storage/nvme/bus_addresses.hpp"
#include "variants/storage/nvme/identify.hpp"
#include "variants/storage/nvme/port.hpp"
#include "variants/storage/nvme/prp.hpp"
#include "variants/storage/nvme/status.hpp"
#include "variants/storage/nvme/vfio.hpp"

namespace feedrate::storage::nvme {
namespace {

/// The pages that a command names, read back as the specification says (section 4.3), with the offset in the first.
std::vector<std::uint64_t> pages_named(const Prps& prps, std::size_t pages, const PrpList& list) {
  std::vector<std::uint64_t> named{prps.first};
  if (pages == 2) named.push_back(prps.second);
  std::uint64_t at = prps.second;
  for (std::size_t steps = 0; pages > 2 && named.size() < pages && steps < 2 * pages; ++steps) {
    const std::uint64_t index = (at - list.bus) / 8;
    if (index >= list.pages * kPrpsPerPage) return {};  // an address outside the list
    const std::uint64_t entry = list.entries[index];
    const bool last_of_page = at % kPage == kPage - 8;
    at += 8;
    if (last_of_page && named.size() + 1 < pages) {
      at = entry;
    } else {
      named.push_back(entry);
    }
  }
  return named;
}

TEST(Prp, NamesEveryPageOfEveryLength) {
  constexpr std::uint64_t kBus = 0x40000, kListBus = 0x7000000;
  std::vector<std::uint64_t> memory(4 * kPrpsPerPage);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{4}, std::size_t{2048}, kPage - 4}) {
    for (std::size_t pages = 1; pages <= 3 * kPrpsPerPage; ++pages) {
      const std::size_t bytes = pages * kPage - offset;
      ASSERT_EQ(pages_of(offset, bytes), pages);
      std::ranges::fill(memory, 0xBAD);
      const PrpList list{memory.data(), kListBus, list_pages_of(pages)};
      Prps prps;
      ASSERT_TRUE(make_prps(kBus + offset, bytes, list, prps));
      std::vector<std::uint64_t> expected{kBus + offset};
      for (std::size_t i = 1; i < pages; ++i) expected.push_back(kBus + i * kPage);
      ASSERT_EQ(pages_named(prps, pages, list), expected) << pages << " pages, offset " << offset;
      // Nothing is written past the list.
      const std::size_t used = list.pages * kPrpsPerPage;
      ASSERT_TRUE(std::all_of(memory.begin() + static_cast<std::ptrdiff_t>(used), memory.end(),
                              [](std::uint64_t entry) { return entry == 0xBAD; }));
      if (list.pages != 0) {
        ASSERT_FALSE(make_prps(kBus + offset, bytes, PrpList{memory.data(), kListBus, list.pages - 1}, prps));
      }
    }
  }
}
TEST(Prp, NamesPagesThatAreNotConsecutive) {
  std::vector<std::uint64_t> memory(kPrpsPerPage);
  const PrpList list{memory.data(), 0x1000, 1};
  Prps prps;
  ASSERT_TRUE(make_prps(
      512, 4 * kPage, [](std::size_t page) { return (100 - page) * kPage; }, list, prps));
  EXPECT_EQ(pages_named(prps, 5, list),
            (std::vector<std::uint64_t>{100 * kPage + 512, 99 * kPage, 98 * kPage, 97 * kPage, 96 * kPage}));
}
TEST(Prp, CountsListPages) {
  EXPECT_EQ(list_pages_of(1), 0u);
  EXPECT_EQ(list_pages_of(2), 0u);
  EXPECT_EQ(list_pages_of(3), 1u);
  EXPECT_EQ(list_pages_of(513), 1u) << "512 entries fill one page";
  EXPECT_EQ(list_pages_of(514), 2u) << "511 entries and a pointer, then 2 entries";
  EXPECT_EQ(list_pages_of(511 + 512 + 1), 2u);
  EXPECT_EQ(list_pages_of(511 + 512 + 2), 3u);
}

TEST(BusAddresses, AssignsDisjointRanges) {
  BusAddresses addresses({{0, 0xFFFFF}, {0x200000, 0x2FFFFF}});
  std::set<std::uint64_t> starts;
  while (const std::uint64_t start = addresses.take(0x10000, 0x1000)) {
    EXPECT_TRUE(starts.insert(start).second);
    EXPECT_GE(start, BusAddresses::kLowest);
    EXPECT_TRUE(start + 0xFFFF <= 0xFFFFF || (start >= 0x200000 && start + 0xFFFF <= 0x2FFFFF)) << start;
    EXPECT_EQ(start % 0x10000, 0u);
  }
  EXPECT_EQ(starts.size(), 15u + 16u);
  addresses.give_back(0x50000);
  EXPECT_EQ(addresses.take(0x20000, 0x1000), 0u) << "the gap is too small";
  EXPECT_EQ(addresses.take(0x10000, 0x1000), 0x50000u);
}
TEST(BusAddresses, RespectsAlignmentAndSmallGaps) {
  BusAddresses addresses({{0, 0xFFFFFFFF}});
  const std::uint64_t small = addresses.take(0x1000, 0x1000), large = addresses.take(0x200000, 0x200000);
  EXPECT_EQ(large % 0x200000, 0u);
  const std::uint64_t between = addresses.take(0x1000, 0x1000);
  EXPECT_NE(between, small);
  EXPECT_LT(between, large);
  EXPECT_EQ(addresses.take(std::uint64_t{1} << 40, 0x1000), 0u);
  EXPECT_EQ(BusAddresses({{~std::uint64_t{0} - 0xFFF, ~std::uint64_t{0}}}).take(0x2000, 0x200000), 0u);
}

TEST(BusAddresses, DoesNotCoverASmallRange) {
  BusAddresses addresses({{0, 0xFFFFF}});
  const std::uint64_t first = addresses.take(0x1000, 0x1000), second = addresses.take(0x1000, 0x1000);
  addresses.give_back(first);
  EXPECT_GT(addresses.take(0x3000, 0x1000), second) << "a range around the second one is not free";
}

/// A port that records whether memory still exists when the device's access to it ends.
struct WatchingPort final : Port {
  const std::string& name() const override { return text; }
  std::span<std::byte> registers() override { return {}; }
  void set_bus_master(bool) override {}
  std::uint64_t map(std::byte* data, std::size_t) override { return reinterpret_cast<std::uintptr_t>(data); }
  void unmap(std::uint64_t bus, std::size_t bytes) noexcept override {
    existed = ::msync(reinterpret_cast<void*>(bus), bytes, MS_ASYNC) == 0;  // ENOMEM: the memory is not mapped
    ++unmapped;
  }
  std::string text = "watching";
  bool existed = false;
  int unmapped = 0;
};
TEST(DmaMemory, EndsAccessBeforeItIsFreed) {
  WatchingPort port;
  {
    DmaMemory memory(port, 100);
    EXPECT_EQ(memory.size(), kPage);
    DmaMemory moved = std::move(memory);
    memory = DmaMemory(port, kPage + 1);
    EXPECT_EQ(memory.size(), 2 * kPage);
    EXPECT_EQ(port.unmapped, 0);
  }
  EXPECT_EQ(port.unmapped, 2);
  EXPECT_TRUE(port.existed);
}

class IdentifyData4K {
 public:
  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  IdentifyData view() const { return IdentifyData(bytes_); }

 private:
  std::array<std::byte, kIdentifyBytes> bytes_{};
};
IdentifyData4K valid_controller() {
  IdentifyData4K data;
  std::array<char, 68> text;
  text.fill(' ');
  std::memcpy(text.data() + 20, "Model\x01 7", 8);
  data.put(4, text);
  data.put(77, std::uint8_t{5});
  data.put(88, std::uint32_t{2'000'000});
  data.put(512, std::uint8_t{0x66});
  data.put(513, std::uint8_t{0x44});
  data.put(516, std::uint32_t{7});
  data.put(525, std::uint8_t{1});
  return data;
}
IdentifyData4K valid_namespace() {
  IdentifyData4K data;
  data.put(0, std::uint64_t{1000});
  data.put(25, std::uint8_t{1});
  data.put(26, std::uint8_t{1});
  data.put(128 + 4, std::uint32_t{12} << 16);
  return data;
}

TEST(IdentifyParser, ReadsAController) {
  const ControllerInfo info = parse_controller(valid_controller().view(), 4096);
  EXPECT_EQ(info.serial, "");
  EXPECT_EQ(info.model, "Model? 7");
  EXPECT_EQ(info.max_transfer, std::size_t{4096} << 5);
  EXPECT_EQ(info.shutdown_ns, 2'000'000'000u);
  EXPECT_EQ(info.namespaces, 7u);
  EXPECT_TRUE(info.volatile_write_cache);
  IdentifyData4K unlimited = valid_controller();
  unlimited.put(77, std::uint8_t{0});
  EXPECT_GT(parse_controller(unlimited.view(), 4096).max_transfer, std::size_t{1} << 32);
  unlimited.put(77, std::uint8_t{255});
  EXPECT_GT(parse_controller(unlimited.view(), 4096).max_transfer, std::size_t{1} << 32);
}
TEST(IdentifyParser, RejectsOtherEntrySizes) {
  IdentifyData4K data = valid_controller();
  data.put(512, std::uint8_t{0x77});
  EXPECT_THROW(parse_controller(data.view(), 4096), Failure);
  data = valid_controller();
  data.put(513, std::uint8_t{0x33});
  EXPECT_THROW(parse_controller(data.view(), 4096), Failure);
}
TEST(IdentifyParser, ReadsANamespace) {
  const NamespaceInfo info = parse_namespace(valid_namespace().view(), 3);
  EXPECT_EQ(info.id, 3u);
  EXPECT_EQ(info.block_bytes, 4096u);
  EXPECT_EQ(info.bytes(), 4096'000u);
}
TEST(IdentifyParser, RejectsImpossibleNamespaces) {
  const auto with = [](std::size_t at, auto value) {
    IdentifyData4K data = valid_namespace();
    data.put(at, value);
    return data;
  };
  EXPECT_THROW(parse_namespace(with(0, std::uint64_t{0}).view(), 1), Failure) << "inactive";
  EXPECT_THROW(parse_namespace(with(0, ~std::uint64_t{0}).view(), 1), Failure) << "the size overflows";
  EXPECT_THROW(parse_namespace(with(26, std::uint8_t{2}).view(), 1), Failure) << "no such format";
  EXPECT_THROW(parse_namespace(with(29, std::uint8_t{1}).view(), 1), Failure) << "protection";
  for (const std::uint32_t format : {std::uint32_t{8} << 16, std::uint32_t{40} << 16, (std::uint32_t{12} << 16) | 8}) {
    EXPECT_THROW(parse_namespace(with(132, format).view(), 1), Failure) << format;
  }
}
TEST(IdentifyParser, ChecksTheListOfNamespaces) {
  IdentifyData4K data;
  data.put(0, std::array<std::uint32_t, 3>{1, 4, 7});
  EXPECT_EQ(parse_namespace_list(data.view(), 7), (std::vector<std::uint32_t>{1, 4, 7}));
  EXPECT_THROW(parse_namespace_list(data.view(), 6), Failure);
  data.put(0, std::array<std::uint32_t, 3>{4, 4, 7});
  EXPECT_THROW(parse_namespace_list(data.view(), 7), Failure);
}

TEST(NvmeStatus, HasWordsAndAnErrorNumber) {
  EXPECT_EQ(error_of({0}), 0);
  EXPECT_EQ(error_of({kUnrecoveredReadError}), EIO);
  EXPECT_EQ(error_of({kUnrecoveredReadError | 1u << 14}), EIO) << "with the bit DNR";
  EXPECT_EQ(error_of({kLbaOutOfRange}), ENXIO);
  EXPECT_EQ(error_of({0x7FF}), EIO);
  EXPECT_EQ(describe({kLbaOutOfRange}), "LBA out of range (0x080)");
}

TEST(Vfio, AcceptsOnlyPciAddresses) {
  EXPECT_TRUE(is_pci_address("0000:00:04.0"));
  EXPECT_TRUE(is_pci_address("000a:Ff:1f.7"));
  for (const char* const text : {"", "00:04.0", "0000:00:04.0 ", "0000:00:04/0", "../../../etc", "0000:00:0g.0"}) {
    EXPECT_FALSE(is_pci_address(text)) << text;
  }
}
TEST(Vfio, NamesTheDeviceAndTheRemedy) {
  const auto message = [](const char* address) {
    try {
      VfioPort port(address);
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string("opened");
  };
  EXPECT_EQ(message("/dev/nvme0n1"), "/dev/nvme0n1: not a PCI address; use a form such as 0000:00:04.0");
  EXPECT_EQ(message("fffe:ff:1f.7"), "fffe:ff:1f.7: no such PCI device; `lspci -D` lists the devices");
}

}  // namespace
}  // namespace feedrate::storage::nvme
