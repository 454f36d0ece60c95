#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/message.hpp"

namespace feedrate {

/// Where a message has come to, in the order of its way. A time that nobody took stays 0; the time until the next one
/// that was taken then covers both.
enum class Stage : unsigned {
  sent,        ///< just before it is published
  dequeued,    ///< a worker has it
  copied_in,   ///< it is in the device's memory
  kernel_end,  ///< its result is in the device's memory
  copied_out,  ///< its result is in the host's
  returned,    ///< just before the worker hands the result on
  collected,   ///< verified
};
inline constexpr std::size_t kStages = 7;
inline constexpr std::array<const char*, kStages> kStageNames{"sent",       "dequeued", "copied_in", "kernel_end",
                                                              "copied_out", "returned", "collected"};
using StageTimes = std::array<std::uint64_t, kStages>;  ///< ns of the host's clock

/// The times of sampled messages on their way: each is written by whoever has the message, and read by its collector.
/// What carries the message from thread to thread (release, acquire) carries its times, too.
class StageClock {
 public:
  /// For `producers` with at most `window` messages in flight each.
  StageClock(unsigned producers, std::size_t window)
      : span_(std::bit_ceil(std::max<std::size_t>(2 * window, kLeastSpan))), each_(std::min(span_, kMostSlots)) {
    for (unsigned i = 0; i < producers; ++i) slots_.emplace_back(std::make_unique<Slot[]>(each_));
  }
  /// Between passes: which messages are sampled. `every` is rounded up to a power of two, and to what fits.
  void sample(std::uint64_t every) { every_ = std::bit_ceil(std::max(every, span_ / each_)); }
  bool samples(std::uint64_t sequence) const { return (sequence & (every_ - 1)) == 0; }
  std::uint64_t every() const { return every_; }

  /// The sender's: forgets what an earlier message left.
  void begin(std::uint64_t id, std::uint64_t ns) {
    Slot& slot = slot_of(id);
    for (auto& time : slot.times) time.store(0, std::memory_order_relaxed);
    mark(id, Stage::sent, ns);
  }
  /// `id` must be of a sampled message; one that no producer has is ignored.
  void mark(std::uint64_t id, Stage stage, std::uint64_t ns) {
    if (producer_of(id) >= slots_.size()) return;
    slot_of(id).times[static_cast<unsigned>(stage)].store(ns, std::memory_order_relaxed);
  }
  StageTimes times(std::uint64_t id) {
    StageTimes times{};
    const Slot& slot = slot_of(id);
    for (std::size_t i = 0; i < kStages; ++i) times[i] = slot.times[i].load(std::memory_order_relaxed);
    return times;
  }
  /// Calls `each(id)` for the sampled among `messages`. Runs whose ends fit together are stepped over, so one that lies
  /// inside them out of its turn may be missed: its time then stays unknown.
  template <class Each>
  void for_sampled(const ConstMessages& messages, Each&& each) const {
    for (std::size_t i = 0; i < messages.count;) {
      const std::uint64_t id = messages.header(i).id, sequence = sequence_of(id);
      if (samples(sequence)) each(id);
      const std::uint64_t skip = every_ - (sequence & (every_ - 1));
      const std::size_t last = std::min<std::size_t>(messages.count, i + skip) - 1;
      i = messages.header(last).id == id + (last - i) ? last + 1 : i + 1;
    }
  }

 private:
  static constexpr std::size_t kLeastSpan = 1024, kMostSlots = 4096;  // of a producer
  struct alignas(128) Slot {
    std::array<std::atomic<std::uint64_t>, kStages> times{};
  };
  Slot& slot_of(std::uint64_t id) { return slots_[producer_of(id)][sequence_of(id) / every_ & (each_ - 1)]; }

  std::size_t span_, each_;                                  // how far its messages in flight may lie apart; slots
  std::uint64_t every_ = std::uint64_t{1} << kSequenceBits;  // none until asked
  std::vector<std::unique_ptr<Slot[]>> slots_;
};

}  // namespace feedrate
