#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace feedrate::storage::nvme {

/// A range of bus addresses, both ends included.
struct BusRange {
  std::uint64_t first = 0, last = 0;
};

/// Assigns bus addresses to memory: first fit within the ranges that an IOMMU translates.
class BusAddresses {
 public:
  /// Addresses below this are never assigned, so that 0 can mean "none".
  static constexpr std::uint64_t kLowest = 1 << 16;

  explicit BusAddresses(std::vector<BusRange> usable) : usable_(std::move(usable)) {}
  /// Returns the start of `bytes` free addresses (at least 1), a multiple of `alignment`; 0 if there are none.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment);
  /// Returns addresses that take() has assigned.
  void give_back(std::uint64_t start) { used_.erase(start); }

 private:
  std::vector<BusRange> usable_;
  std::map<std::uint64_t, std::uint64_t> used_;  // start → last address
};

}  // namespace feedrate::storage::nvme
