#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/storage/nvme.hpp"

/// Physical region pages: how a command names its data (section 4.3). PRP entry 1 is the address of the first byte. If
/// the data has two pages, PRP entry 2 is the second page; if it has more, PRP entry 2 is a list of the pages after the
/// first. The last entry of a full page of the list is the address of the list's next page.
namespace feedrate::storage::nvme {

inline constexpr std::size_t kPage = 4096;  ///< the memory page size that the driver sets (CC.MPS = 0)
inline constexpr std::size_t kPrpsPerPage = kPage / sizeof(std::uint64_t);

/// Number of pages that `bytes` bytes occupy if they begin `offset` bytes into a page.
constexpr FEEDRATE_HD std::size_t pages_of(std::size_t offset, std::size_t bytes) {
  return (offset % kPage + bytes + kPage - 1) / kPage;
}
/// Number of pages that the PRP list of a command with `pages` pages of data occupies. Each page of the list except the
/// last has one entry fewer for data, because it has the address of the next one.
constexpr FEEDRATE_HD std::size_t list_pages_of(std::size_t pages) {
  if (pages <= 2) return 0;
  const std::size_t entries = pages - 1;
  return entries <= kPrpsPerPage ? 1 : 1 + (entries - 2) / (kPrpsPerPage - 1);
}

/// Memory for PRP lists: consecutive pages, also on the bus.
struct PrpList {
  std::uint64_t* entries = nullptr;
  std::uint64_t bus = 0;  ///< bus address of `entries`, a multiple of kPage
  std::size_t pages = 0;
};
/// The two PRP entries of a command.
struct Prps {
  std::uint64_t first = 0, second = 0;
};

/// Names `bytes` bytes (at least 1) that begin `offset` bytes into a page. `page_bus(i)` returns the bus address of
/// page `i` of the data, a multiple of kPage. Returns false if the list is too small.
template <class PageBus>
FEEDRATE_HD bool make_prps(std::size_t offset, std::size_t bytes, PageBus&& page_bus, const PrpList& list, Prps& prps) {
  const std::size_t pages = pages_of(offset, bytes);
  prps = {page_bus(std::size_t{0}) + offset % kPage, 0};
  if (pages == 1) return true;
  if (pages == 2) {
    prps.second = page_bus(std::size_t{1});
    return true;
  }
  if (list_pages_of(pages) > list.pages) return false;
  prps.second = list.bus;
  std::size_t at = 0;
  for (std::size_t page = 1; page < pages; ++page) {
    if (at % kPrpsPerPage == kPrpsPerPage - 1 && page + 1 < pages) {
      list.entries[at] = list.bus + (at + 1) * sizeof(std::uint64_t);
      ++at;
    }
    list.entries[at++] = page_bus(page);
  }
  return true;
}
/// The same for data that is consecutive on the bus.
inline FEEDRATE_HD bool make_prps(std::uint64_t bus, std::size_t bytes, const PrpList& list, Prps& prps) {
  const std::uint64_t first = bus - bus % kPage;
  return make_prps(
      static_cast<std::size_t>(bus % kPage), bytes, [&](std::size_t i) { return first + i * kPage; }, list, prps);
}

}  // namespace feedrate::storage::nvme
