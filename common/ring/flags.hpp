#pragma once
#include "common/ring/memory.hpp"

/// Slots with in-band ready flags. A message is split into units of twelve bytes; each unit carries the message's
/// number in the same 16 bytes. A message has arrived when all its units carry the expected number. Pollers need not
/// read a cursor first. This saves the GPU one round trip over the bus on input and one system-wide fence on output; it
/// costs a third more bytes and one copy on the host. (NCCL's LL protocol does the same with 8-byte words.)
///
/// The protocol needs no order between units, and units are never cleared: a unit with the number of an earlier lap, or
/// with no number, is not ready yet. Numbers are taken modulo 2^30, which is above the capacity of any ring, so the
/// number of an earlier lap never equals the current one. A bit that is always set distinguishes a written unit from
/// one that has never been written.
namespace feedrate {

inline constexpr std::size_t kUnitData = sizeof(Unit::data);
inline constexpr std::size_t kLine = 128;  ///< bytes per memory fetch of the GPU; slots are aligned to this
inline constexpr std::uint32_t kStopFlag = 0x8000'0000u;
inline constexpr std::uint32_t kWrittenFlag = 0x4000'0000u;

constexpr FEEDRATE_HD std::uint32_t flag_of(std::uint64_t number) {
  return (static_cast<std::uint32_t>(number) & (kWrittenFlag - 1)) | kWrittenFlag;
}
/// Number of units of a message of `bytes` bytes, header included.
constexpr FEEDRATE_HD std::uint32_t units_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + kUnitData - 1) / kUnitData);
}
constexpr FEEDRATE_HD std::size_t flagged_slot_bytes(std::size_t stride) {
  return (units_of(stride) * sizeof(Unit) + kLine - 1) & ~(kLine - 1);
}
/// Number of units of the message that begins with unit `first`, header included; `length` is the header's last word.
constexpr FEEDRATE_HD std::uint32_t units_needed(const Unit& first) {
  return units_of(sizeof(Header) + ((first.data[2] & kFailed) != 0 ? 0 : first.data[2]));
}

/// Writes message `number` into a slot; for one host thread. `message` must be readable for 4 bytes past its last unit.
template <class Memory = SystemMemory>
void store_flagged(Unit* slot, std::uint64_t number, const std::byte* message, std::uint32_t units) {
  const std::uint32_t flag = flag_of(number);
  for (std::uint32_t i = 0; i < units; ++i) Memory::store_unit(slot[i], message + i * kUnitData, flag);
}

enum class Flagged { missing, complete, stop };

/// Reads message `number` into `to`, which has space for `most` units plus 4 bytes; unless the result is `complete`,
/// `to` is only partly written. `done`: number of units of this message read so far; units read by earlier calls are
/// not read again.
template <class Memory = SystemMemory>
Flagged load_flagged(const Unit* slot, std::uint64_t number, std::byte* to, std::uint32_t most, std::uint32_t& done) {
  const std::uint32_t flag = flag_of(number);
  const auto units = [&] {
    Unit first{};
    std::memcpy(first.data, to, kUnitData);
    return units_needed(first) < most ? units_needed(first) : most;
  };
  const auto load = [&](std::uint32_t unit) { return Memory::load_unit(slot[unit], to + unit * kUnitData); };
  if (done == 0) {
    const std::uint32_t found = load(0);
    if (found != flag) return (found & kStopFlag) != 0 ? Flagged::stop : Flagged::missing;
    done = 1;
  }
  constexpr std::uint32_t kTogether = 8;  // flags per check: usually all of them are set
  for (const std::uint32_t end = units(); done < end;) {
    const std::uint32_t next = done + kTogether < end ? done + kTogether : end;
    std::uint32_t wrong = 0;
    for (std::uint32_t unit = done; unit < next; ++unit) wrong |= load(unit) ^ flag;
    if (wrong != 0) return Flagged::missing;
    done = next;
  }
  return Flagged::complete;
}
template <class Memory = SystemMemory>
Flagged load_flagged(const Unit* slot, std::uint64_t number, std::byte* to, std::uint32_t most) {
  std::uint32_t done = 0;
  return load_flagged<Memory>(slot, number, to, most, done);
}

}  // namespace feedrate
