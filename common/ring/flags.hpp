#pragma once
#include "common/ring/memory.hpp"

/// Slots that say themselves whether they are full. A message is cut into units of twelve bytes, each with the
/// message's number beside it in the same 16 bytes: it is there when all its units carry the number that is waited for.
/// Nobody has to look at a cursor first, which saves the GPU a round trip over the bus on the way in and a system-wide
/// fence on the way out, for a third more bytes and a copy on the host. (NCCL's LL protocol does this with 8-byte
/// words.)
///
/// No order between units is needed or assumed, and none is ever cleared: the number of an earlier lap, or none, means
/// "not yet". Numbers count modulo 2^30, far above any ring's capacity, so an earlier lap's never looks like this
/// one's; a bit that is always set tells them from a unit that no message has reached yet.
namespace feedrate {

inline constexpr std::size_t kUnitData = sizeof(Unit::data);
inline constexpr std::size_t kLine = 128;  ///< bytes that the GPU fetches at once; slots begin on them
inline constexpr std::uint32_t kStopFlag = 0x8000'0000u;
inline constexpr std::uint32_t kWrittenFlag = 0x4000'0000u;

constexpr FEEDRATE_HD std::uint32_t flag_of(std::uint64_t number) {
  return (static_cast<std::uint32_t>(number) & (kWrittenFlag - 1)) | kWrittenFlag;
}
/// Units of a message with header, `bytes` in all.
constexpr FEEDRATE_HD std::uint32_t units_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + kUnitData - 1) / kUnitData);
}
constexpr FEEDRATE_HD std::size_t flagged_slot_bytes(std::size_t stride) {
  return (units_of(stride) * sizeof(Unit) + kLine - 1) & ~(kLine - 1);
}
/// Units of the message whose first unit this is, header included; the header's length is its last word.
constexpr FEEDRATE_HD std::uint32_t units_needed(const Unit& first) {
  return units_of(sizeof(Header) + ((first.data[2] & kFailed) != 0 ? 0 : first.data[2]));
}

/// Writes message `number` into a slot, by one host thread. `message` is readable for 4 bytes behind its last unit.
template <class Memory = SystemMemory>
void store_flagged(Unit* slot, std::uint64_t number, const std::byte* message, std::uint32_t units) {
  const std::uint32_t flag = flag_of(number);
  for (std::uint32_t i = 0; i < units; ++i) Memory::store_unit(slot[i], message + i * kUnitData, flag);
}

enum class Flagged { missing, whole, stop };

/// Reads message `number` to `to`, which has room for `most` units and 4 bytes more; anything but `whole` leaves it
/// partly written. `done`: how many units were read by earlier calls for this message, and now are.
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
  constexpr std::uint32_t kTogether = 8;  // flags that are looked at as one: mostly all are there
  for (const std::uint32_t end = units(); done < end;) {
    const std::uint32_t next = done + kTogether < end ? done + kTogether : end;
    std::uint32_t wrong = 0;
    for (std::uint32_t unit = done; unit < next; ++unit) wrong |= load(unit) ^ flag;
    if (wrong != 0) return Flagged::missing;
    done = next;
  }
  return Flagged::whole;
}
template <class Memory = SystemMemory>
Flagged load_flagged(const Unit* slot, std::uint64_t number, std::byte* to, std::uint32_t most) {
  std::uint32_t done = 0;
  return load_flagged<Memory>(slot, number, to, most, done);
}

}  // namespace feedrate
