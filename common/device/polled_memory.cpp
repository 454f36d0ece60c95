#include "common/device/polled_memory.hpp"

#include <algorithm>
#include <numeric>

namespace feedrate {
namespace {

constexpr std::size_t kChoice = 4;  // pages per piece, about half of which are of either kind

}  // namespace

PolledMemory::PolledMemory(Device& device, std::size_t pieces)
    : device_(device),
      pages_(device.allocate_host(kChoice * pieces * kPage, HostMemory::pinned)),
      left_(kChoice * pieces) {
  const std::vector<std::uint32_t> cycles = device.page_read_cycles(pages_, kPage);
  std::iota(left_.begin(), left_.end(), std::size_t{0});
  std::ranges::stable_sort(left_, {}, [&](std::size_t page) { return cycles[page]; });
}

std::byte* PolledMemory::take(std::size_t bytes, bool near) {
  if (bytes > kPage || left_.empty()) {
    others_.push_back(device_.allocate_host(bytes, HostMemory::pinned));
    return others_.back().data();
  }
  const auto at = near ? left_.begin() : left_.end() - 1;
  std::byte* const page = pages_.data() + *at * kPage;
  left_.erase(at);
  return page;
}

}  // namespace feedrate
