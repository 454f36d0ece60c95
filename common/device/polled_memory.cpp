#include "common/device/polled_memory.hpp"

#include <algorithm>
#include <numeric>

namespace feedrate {
namespace {

/// Half of the pages are of either kind, if there are enough of them.
std::size_t pages_for(std::size_t pieces) {
  constexpr std::size_t kSpare = 8;
  return 2 * pieces + kSpare;
}

}  // namespace

PolledMemory::PolledMemory(Device& device, std::size_t pieces)
    : device_(device), memory_(device.allocate_host((pages_for(pieces) + 1) * kPage, HostMemory::pinned)) {
  // Allocations need not begin on a page.
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  std::byte* const first = memory_.data() + (kPage - address % kPage) % kPage;
  const std::size_t count = pages_for(pieces);
  const std::vector<std::uint32_t> cycles = device.page_read_cycles({first, count * kPage}, kPage);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t page) { return cycles[page]; });
  for (const std::size_t page : order) left_.push_back(first + page * kPage);
}

std::byte* PolledMemory::take(std::size_t bytes, bool near) {
  if (bytes > kPage || left_.empty()) {
    others_.push_back(device_.allocate_host(bytes, HostMemory::pinned));
    return others_.back().data();
  }
  std::byte* const page = near ? left_.front() : left_.back();
  near ? left_.pop_front() : left_.pop_back();
  return page;
}

}  // namespace feedrate
