#include "common/payload/payloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/payload/payload.hpp"

namespace feedrate {

std::string difference_from(std::span<const std::byte> expected, const ConstMessages& result) {
  const Header& header = result.header(0);
  if ((header.length & kFailed) != 0) return fmt::format("it failed with code {}", header.length & ~kFailed);
  if (header.length != expected.size()) {
    return fmt::format("expected {} bytes, found {}", expected.size(), header.length);
  }
  for (std::size_t at = 0; at < expected.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t wanted = 0, found = 0;
    const std::size_t bytes = std::min(sizeof wanted, expected.size() - at);
    std::memcpy(&wanted, expected.data() + at, bytes);
    std::memcpy(&found, result.payload(0) + at, bytes);
    if (wanted != found) {
      return fmt::format("in the word at byte {} expected {:#010x}, found {:#010x}", at, wanted, found);
    }
  }
  const std::uint32_t sum = checksum_of(expected.data(), expected.size());
  if (header.checksum != sum)
    return fmt::format("expected the checksum {:#010x}, found {:#010x}", sum, header.checksum);
  return "it equals the result of the workload's reference(), but the workload's check() rejects it";
}

}  // namespace feedrate
