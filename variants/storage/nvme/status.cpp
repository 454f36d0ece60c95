#include "variants/storage/nvme/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace feedrate::storage::nvme {
namespace {

struct KnownStatus {
  unsigned type_and_code;
  int error;
  const char* text;
};
// Sections 4.6.1.2.1 (generic), 4.6.1.2.2 (specific to the command) and 4.6.1.2.3 (media).
constexpr auto kKnownStatuses = std::to_array<KnownStatus>({
    {0x000, 0, "success"},
    {0x001, EIO, "invalid opcode"},
    {0x002, EIO, "invalid field"},
    {0x004, EIO, "data transfer error"},
    {0x005, EIO, "aborted because power is lost"},
    {0x006, EIO, "internal error"},
    {0x007, ECANCELED, "aborted on request"},
    {kAbortedSqDeletion, ECANCELED, "aborted because its queue was deleted"},
    {0x00B, ENXIO, "invalid namespace"},
    {0x013, EIO, "invalid PRP offset"},
    {0x020, EROFS, "the namespace is write-protected"},
    {kLbaOutOfRange, ENXIO, "LBA out of range"},
    {0x081, ENOSPC, "capacity exceeded"},
    {0x082, EAGAIN, "the namespace is not ready"},
    {0x101, EIO, "invalid queue identifier"},
    {0x102, EIO, "invalid queue size"},
    {0x182, EROFS, "attempted write to a read-only range"},
    {0x280, EIO, "write fault"},
    {kUnrecoveredReadError, EIO, "unrecovered read error"},
});

}  // namespace

std::string describe(Status status) {
  const auto known = std::ranges::find(kKnownStatuses, type_and_code(status), &KnownStatus::type_and_code);
  return fmt::format("{} ({:#05x})", known == kKnownStatuses.end() ? "error" : known->text, type_and_code(status));
}

int error_of(Status status) {
  const auto known = std::ranges::find(kKnownStatuses, type_and_code(status), &KnownStatus::type_and_code);
  return known == kKnownStatuses.end() ? EIO : known->error;
}

}  // namespace feedrate::storage::nvme
