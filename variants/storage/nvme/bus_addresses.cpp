#include "variants/storage/nvme/bus_addresses.hpp"

#include <algorithm>

namespace feedrate::storage::nvme {

std::uint64_t BusAddresses::take(std::uint64_t bytes, std::uint64_t alignment) {
  for (const BusRange& range : usable_) {
    std::uint64_t start = std::max(range.first, kLowest);
    while (start <= range.last) {
      const std::uint64_t aligned = (start + alignment - 1) / alignment * alignment, last = aligned + bytes - 1;
      if (aligned < start || last < aligned || last > range.last) break;
      // The used range with the greatest start that is not after `last` is the only one that can overlap, as used
      // ranges are disjoint.
      const auto after = used_.upper_bound(last);
      if (after == used_.begin() || std::prev(after)->second < aligned) {
        used_[aligned] = last;
        return aligned;
      }
      start = std::prev(after)->second + 1;
    }
  }
  return 0;
}

}  // namespace feedrate::storage::nvme
