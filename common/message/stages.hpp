#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "common/device/device.hpp"
#include "common/message/stage_recorder.hpp"

namespace feedrate {

using StageTimes = std::array<std::uint64_t, kStages>;

/// The times of sampled messages on their way. The current holder of a message, which may be the GPU, writes them; the
/// message's collector reads them. The release and acquire operations that pass the message between threads also make
/// its times visible. Flagged results have no such ordering, so a time may arrive late; it then counts as not recorded.
class StageClock {
 public:
  /// For `producers` producers with at most `window` messages in flight each. At most every `finest`-th message is
  /// sampled; `finest` is a power of two.
  StageClock(Device& device, unsigned producers, std::size_t window, std::uint64_t finest = 1) {
    const std::size_t span = std::bit_ceil(std::max<std::size_t>(2 * window, kLeastSpan));
    finest = std::max<std::uint64_t>(finest, span / std::min(span, kMaxSlots));
    recorder_.producers = producers;
    recorder_.each = static_cast<std::uint32_t>(std::max<std::size_t>(1, span / finest));
    recorder_.shift = static_cast<std::uint32_t>(std::countr_zero(finest));
    memory_ =
        device.allocate_host(std::size_t{producers} * recorder_.each * sizeof(StageRecorder::Slot), HostMemory::pinned);
    recorder_.slots = reinterpret_cast<StageRecorder::Slot*>(memory_.data());
    recorder_.between = finest - 1;
  }
  /// Samples every `every`-th message; called between passes. `every` is rounded up to a power of two, and to the
  /// finest interval for which there are slots.
  void sample(std::uint64_t every) { every_ = std::bit_ceil(std::max(every, finest())); }
  bool samples(std::uint64_t sequence) const { return (sequence & (every_ - 1)) == 0; }
  bool samples_one_of(std::uint64_t sequence, std::uint64_t count) const {
    return ((sequence + every_ - 1) & ~(every_ - 1)) < sequence + count;
  }
  std::uint64_t every() const { return every_; }
  /// Recorder for a kernel that is launched now and ends before the sampling changes.
  StageRecorder recorder() const {
    StageRecorder recorder = recorder_;
    recorder.between = every_ - 1;
    return recorder;
  }
  /// Recorder for a resident kernel, which records every message that might ever be sampled.
  StageRecorder lasting_recorder() const { return recorder_; }

  /// Called by the sender: clears the times of an earlier message and waits until they are cleared. The slot's cache
  /// line has to be fetched from the GPU or another core, and stores wait for earlier stores. It is better to wait now
  /// than between taking the `sent` time and publishing.
  void forget(std::uint64_t id) {
    for (auto& time : recorder_.slot_of(id).times) SystemMemory::store_relaxed(time, 0);
    SystemMemory::exchange(recorder_.slot_of(id).times[0], 0);
  }
  /// Records a time of a sampled message. Ignores an id that belongs to no producer.
  void mark(std::uint64_t id, Stage stage, std::uint64_t ns) { recorder_.mark(id, stage, ns); }
  StageTimes times(std::uint64_t id) const {
    StageTimes times{};
    for (std::size_t i = 0; i < kStages; ++i) times[i] = SystemMemory::load_relaxed(recorder_.slot_of(id).times[i]);
    return times;
  }
  /// Calls `each(id)` for each sampled message in `messages`. A sequence whose first and last ids match is skipped
  /// without reading the ids in between, so a sampled message out of order inside it may be missed; its time then stays
  /// unknown.
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
  static constexpr std::size_t kLeastSpan = 1024, kMaxSlots = 4096;  // per producer
  std::uint64_t finest() const { return recorder_.between + 1; }

  Buffer memory_;
  StageRecorder recorder_;
  std::uint64_t every_ = std::uint64_t{1}
                         << kSequenceBits;  // until sample() is called: each producer's first message only
};

}  // namespace feedrate
