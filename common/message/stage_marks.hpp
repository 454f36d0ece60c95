#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/device/device_clock.hpp"
#include "common/message/marks.hpp"
#include "common/message/message.hpp"
#include "common/ring/memory.hpp"

namespace feedrate {

/// Where a message has come to, in the order of its way. A time that nobody took stays 0; the time until the next one
/// that was taken then covers both.
enum class Stage : unsigned {
  sent,          ///< just before it is published
  brokered,      ///< the broker has said that it has it, and the sender has read that
  dequeued,      ///< a worker has it
  claimed,       ///< a resident block has seen it
  copied_in,     ///< it is in the device's memory
  kernel_start,  ///< the device begins to work on it
  kernel_end,    ///< its result is written
  copied_out,    ///< its result is in the host's memory
  returned,      ///< just before a worker hands the result on; without one here, when the collector comes to it
  collected,     ///< verified
};
inline constexpr std::size_t kStages = 10;
inline constexpr std::array<const char*, kStages> kStageNames{"sent",      "brokered",     "dequeued",   "claimed",
                                                              "copied_in", "kernel_start", "kernel_end", "copied_out",
                                                              "returned",  "collected"};
/// Those whose times are the device's clock's, the others are the host's.
constexpr bool on_device_clock(Stage stage) { return stage >= Stage::claimed && stage <= Stage::copied_out; }

/// The times of sampled messages, in memory that the device reaches; a view for whoever has a message.
struct StageMarks {
  struct alignas(128) Slot {
    std::uint64_t times[kStages];  ///< ns; 0: not taken
  };
  Slot* slots = nullptr;  ///< `each` of every producer; nullptr: nothing is sampled
  std::uint32_t producers = 0, each = 1;
  std::uint32_t shift = 0;       ///< sequence number to place
  std::uint64_t between = 0;     ///< a message is sampled when these bits of its id are 0: every power-of-two-th
  std::uint64_t claimed_ns = 0;  ///< when those at hand were claimed, where somebody claims

  StageMarks() = default;
  /// From what a lane or a batch carries, and to that.
  FEEDRATE_HD explicit StageMarks(const Marks& carried) : StageMarks(std::bit_cast<StageMarks>(carried)) {}
  FEEDRATE_HD operator Marks() const {  // NOLINT(google-explicit-constructor): a view of the same
    return std::bit_cast<Marks>(*this);
  }

  FEEDRATE_HD bool wanted() const { return slots != nullptr; }
  FEEDRATE_HD void claimed(std::uint64_t ns) { claimed_ns = ns; }
  FEEDRATE_HD bool samples(std::uint64_t id) const { return slots != nullptr && (id & between) == 0; }
  FEEDRATE_HD Slot& slot_of(std::uint64_t id) const {
    const std::uint64_t sequence = id & kSequenceMask;
    return slots[(id >> kSequenceBits) * each + (sequence >> shift & (each - 1))];
  }
  /// An id that no producer has is ignored.
  FEEDRATE_HD void mark(std::uint64_t id, Stage stage, std::uint64_t ns) const {
    if ((id >> kSequenceBits) >= producers) return;
    SystemMemory::store_relaxed(slot_of(id).times[static_cast<unsigned>(stage)], ns);
  }
  FEEDRATE_HD void begin(std::uint64_t id) const {
    if (claimed_ns != 0) mark(id, Stage::claimed, claimed_ns);
    mark(id, Stage::kernel_start, device_clock_ns());
  }
  FEEDRATE_HD void end(std::uint64_t id) const { mark(id, Stage::kernel_end, device_clock_ns()); }
};
static_assert(sizeof(StageMarks) == sizeof(Marks) && offsetof(StageMarks, slots) == 0 &&
              offsetof(StageMarks, claimed_ns) == offsetof(Marks, claimed_ns));

}  // namespace feedrate
