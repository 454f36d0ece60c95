#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/device/device_clock.hpp"
#include "common/message/message.hpp"
#include "common/message/recorder.hpp"
#include "common/ring/memory.hpp"

namespace feedrate {

/// Stages of a message on its way, in order. A stage whose time was not recorded stays 0; the interval up to the next
/// recorded stage then covers both.
enum class Stage : unsigned {
  sent,          ///< the time just before it is published
  brokered,      ///< the broker has acknowledged it, and the sender has read the acknowledgement
  dequeued,      ///< a worker has received it
  claimed,       ///< a resident block has seen it
  copied_in,     ///< it is in device memory
  kernel_start,  ///< the device begins work on it
  kernel_end,    ///< its result is written
  copied_out,    ///< its result is in host memory
  returned,   ///< just before a worker sends the result; if no worker of this process does, when the collector reaches
              ///< it
  collected,  ///< its result is verified
};
inline constexpr std::size_t kStages = 10;
inline constexpr std::array<const char*, kStages> kStageNames{"sent",      "brokered",     "dequeued",   "claimed",
                                                              "copied_in", "kernel_start", "kernel_end", "copied_out",
                                                              "returned",  "collected"};
/// Whether the stage's time is from the device's clock; the other times are from the host's clock.
constexpr bool on_device_clock(Stage stage) { return stage >= Stage::claimed && stage <= Stage::copied_out; }

/// View of the times of sampled messages, in device-accessible memory. Every component that handles messages has a
/// copy.
struct StageRecorder {
  struct alignas(128) Slot {
    std::uint64_t times[kStages];  ///< in ns; 0: not recorded
  };
  Slot* slots = nullptr;  ///< `each` slots per producer; nullptr: nothing is sampled
  std::uint32_t producers = 0, each = 1;
  std::uint32_t shift = 0;       ///< maps a sequence number to a slot
  std::uint64_t between = 0;     ///< a message is sampled if these bits of its id are 0: every 2^n-th message
  std::uint64_t claimed_ns = 0;  ///< claim time of the current messages, if claims are recorded

  StageRecorder() = default;
  /// Conversion from and to the words that a lane or batch carries.
  FEEDRATE_HD explicit StageRecorder(const RecorderState& carried)
      : StageRecorder(std::bit_cast<StageRecorder>(carried)) {}
  FEEDRATE_HD operator RecorderState() const {  // NOLINT(google-explicit-constructor): same contents
    return std::bit_cast<RecorderState>(*this);
  }

  FEEDRATE_HD bool wanted() const { return slots != nullptr; }
  FEEDRATE_HD void claimed(std::uint64_t ns) { claimed_ns = ns; }
  FEEDRATE_HD bool samples(std::uint64_t id) const { return slots != nullptr && (id & between) == 0; }
  FEEDRATE_HD Slot& slot_of(std::uint64_t id) const {
    const std::uint64_t sequence = id & kSequenceMask;
    return slots[(id >> kSequenceBits) * each + (sequence >> shift & (each - 1))];
  }
  /// Ignores an id that belongs to no producer.
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
static_assert(sizeof(StageRecorder) == sizeof(RecorderState) && offsetof(StageRecorder, slots) == 0 &&
              offsetof(StageRecorder, claimed_ns) == offsetof(RecorderState, claimed_ns));

}  // namespace feedrate
