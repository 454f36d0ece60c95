#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/storage/nvme.hpp"

/// Parsers of the data that Identify returns. It is foreign input: every length and index is checked, and invalid or
/// unsupported data throws Failure, without the device's name.
namespace feedrate::storage::nvme {

using IdentifyData = std::span<const std::byte, kIdentifyBytes>;

/// What Identify Controller says (section 5.15.2.2).
struct ControllerInfo {
  std::string serial, model, firmware;
  std::size_t max_transfer = 0;   ///< bytes per command (MDTS)
  std::uint32_t namespaces = 0;   ///< highest valid namespace identifier
  std::uint64_t shutdown_ns = 0;  ///< longest time of a shutdown (RTD3E); 0 if not reported
  bool volatile_write_cache = false;
};
/// A namespace and its format (section 5.15.2.1).
struct NamespaceInfo {
  std::uint32_t id = 0;
  std::uint64_t blocks = 0;
  std::uint32_t block_bytes = 0;
  std::uint64_t bytes() const { return blocks * block_bytes; }
};

/// `page`: the unit of MDTS in bytes (Capabilities::min_page()).
ControllerInfo parse_controller(IdentifyData, std::uint64_t page);
NamespaceInfo parse_namespace(IdentifyData, std::uint32_t id);
/// Identifiers of active namespaces (section 5.15.2.3), at most 1024. `highest`: ControllerInfo::namespaces.
std::vector<std::uint32_t> parse_namespace_list(IdentifyData, std::uint32_t highest);

}  // namespace feedrate::storage::nvme
