#include "variants/storage/nvme/identify.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "common/error.hpp"

namespace feedrate::storage::nvme {
namespace {

/// The value at byte `At`, little-endian as on every machine that the driver supports.
template <class T, std::size_t At>
T field(IdentifyData data) {
  static_assert(At + sizeof(T) <= kIdentifyBytes);
  T value;
  std::memcpy(&value, data.data() + At, sizeof value);
  return value;
}
/// A text of printable ASCII, padded with spaces; other bytes become '?'.
std::string text_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const char c = static_cast<char>(byte);
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  text.erase(text.find_last_not_of(" ?") + 1);
  return text;
}
/// Whether the entry size 2^`log` lies in the range of an SQES or CQES field: smallest in bits 3:0, largest in 7:4.
bool supports_entries(std::uint8_t sizes, unsigned log) { return (sizes & 0xFu) <= log && log <= (sizes >> 4); }

}  // namespace

ControllerInfo parse_controller(IdentifyData data, std::uint64_t page) {
  ControllerInfo info;
  info.serial = text_of(data.subspan<4, 20>());
  info.model = text_of(data.subspan<24, 40>());
  info.firmware = text_of(data.subspan<64, 8>());
  const auto transfer_log = field<std::uint8_t, 77>(data);
  constexpr std::size_t kUnlimited = std::size_t{1} << 40;
  info.max_transfer = transfer_log == 0 || transfer_log >= 28 ? kUnlimited : page << transfer_log;
  info.shutdown_ns = std::uint64_t{field<std::uint32_t, 88>(data)} * 1000;
  if (!supports_entries(field<std::uint8_t, 512>(data), 6) || !supports_entries(field<std::uint8_t, 513>(data), 4)) {
    throw Failure(fmt::format("the sizes of queue entries are not supported (SQES {:#x}, CQES {:#x})",
                              field<std::uint8_t, 512>(data), field<std::uint8_t, 513>(data)));
  }
  info.namespaces = field<std::uint32_t, 516>(data);
  info.volatile_write_cache = (field<std::uint8_t, 525>(data) & 1) != 0;
  return info;
}

NamespaceInfo parse_namespace(IdentifyData data, std::uint32_t id) {
  const auto fail = [id](const std::string& what) { return Failure(fmt::format("namespace {}: {}", id, what)); };
  NamespaceInfo info{id, field<std::uint64_t, 0>(data), 0};
  if (info.blocks == 0) throw fail("it is not active");
  const unsigned formats = field<std::uint8_t, 25>(data) + 1u, format = field<std::uint8_t, 26>(data) & 0xFu;
  if (format >= formats) throw fail(fmt::format("format {} of {} does not exist", format, formats));
  std::uint32_t described;
  std::memcpy(&described, data.data() + 128 + std::size_t{4} * format, sizeof described);
  const unsigned metadata = described & 0xFFFF, log = described >> 16 & 0xFF;
  if (metadata != 0) throw fail(fmt::format("blocks with {} bytes of metadata are not supported", metadata));
  if (log < 9 || log > 16) throw fail(fmt::format("blocks of 2^{} bytes are not supported", log));
  if ((field<std::uint8_t, 29>(data) & 7) != 0) throw fail("end-to-end protection is not supported");
  info.block_bytes = 1u << log;
  if (info.blocks > std::numeric_limits<std::uint64_t>::max() / info.block_bytes) {
    throw fail(fmt::format("the size of {} blocks of {} bytes exceeds 64 bits", info.blocks, info.block_bytes));
  }
  return info;
}

std::vector<std::uint32_t> parse_namespace_list(IdentifyData data, std::uint32_t highest) {
  std::vector<std::uint32_t> ids;
  for (std::size_t at = 0; at < kIdentifyBytes; at += sizeof(std::uint32_t)) {
    std::uint32_t id;
    std::memcpy(&id, data.data() + at, sizeof id);
    if (id == 0) break;
    if (id > highest || (!ids.empty() && id <= ids.back())) {
      throw Failure(fmt::format("the list of namespaces is invalid at identifier {}", id));
    }
    ids.push_back(id);
  }
  return ids;
}

}  // namespace feedrate::storage::nvme
