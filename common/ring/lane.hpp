#pragma once
#include "common/message/recorder.hpp"
#include "common/ring/flags.hpp"
#include "common/ring/ring.hpp"

/// A lane is one ring that several pollers serve concurrently. A poller is a team of GPU threads in one block, or a
/// host thread. Pollers may leave when no messages arrive, and can be called back.
///
/// Pollers share a LaneState. A poller that finds messages claims them by advancing `taken`; each message is claimed
/// once. Results are returned in one of three ways:
///   - in order, by counter: one word per slot (`ends`) holds the end of the claim that began there; the collector goes
///     from claim to claim, and no poller waits for another;
///   - as they finish, by counter: one word per slot (`finished`) identifies the message whose result is in that slot;
///   - by flags: the result's units carry its number (flags.hpp). The collector then chooses whether to read results in
///     order.
///
/// Leaving is also a claim: a permanent one on all further messages, after which no other claim can follow. A poller
/// must not leave while it holds claimed messages that it has not seen. The last poller to leave writes the lane's
/// position and then `parked`. A thread that waits for results and sees `parked` while messages are published calls the
/// pollers back.
namespace feedrate {

inline constexpr unsigned kMaxMirrors = 16;

enum class Notify : std::uint32_t { counter, flags };
enum class ResultOrder : std::uint32_t { in_order, as_finished };

/// Written by the last poller that leaves; read by the thread that calls the pollers back.
struct LaneParking {
  std::uint64_t position;  ///< the number of the next message to serve
  std::uint64_t parked;    ///< 0 while the lane is served
};

struct LaneView {
  /// `in`, `out` and the strides apply to messages by counter. `completed` is written by the collector, and only for
  /// results in order by counter; other host threads read it to learn how far claims are complete.
  RingView ring;
  /// One word per slot, for results in order by counter: the end of the claim that began at this number, written when
  /// its results are complete. The word has 64 bits because any number of laps may pass before another claim begins at
  /// the slot; until then the word keeps the value of an earlier lap.
  std::uint64_t* ends = nullptr;
  std::uint32_t* finished = nullptr;  ///< for results as they finish: number + 1, written every lap
  LaneParking* parking = nullptr;
  /// Slots of units, if messages are notified by flags. The producer writes each of the `mirrors` copies of the
  /// incoming slots, one after another, and different pollers watch different copies: the GPU has only one or two reads
  /// of a cache line in flight at a time, so more pollers need more lines to read.
  Unit* flagged_in[kMaxMirrors] = {};
  Unit* flagged_out = nullptr;
  std::uint32_t in_units = 0, out_units = 0;            ///< units of a full slot
  std::uint32_t in_slot_units = 0, out_slot_units = 0;  ///< distance between slots in units
  std::uint32_t mirrors = 1;
  Notify notify = Notify::counter;
  ResultOrder results = ResultOrder::in_order;
  RecorderState recorder = {};  ///< where the pollers record when they work on sampled messages

  FEEDRATE_HD Unit* unit_in(std::uint64_t number, std::uint32_t mirror) const {
    return unit_of(flagged_in[mirror], number);
  }
  /// For device code, which selects the copy once: an array in registers has no variable index.
  template <class SomeUnit>
  FEEDRATE_HD SomeUnit* unit_of(SomeUnit* copy, std::uint64_t number) const {
    return copy + ring.slot(number) * in_slot_units;
  }
  FEEDRATE_HD Unit* unit_out(std::uint64_t number) const { return flagged_out + ring.slot(number) * out_slot_units; }
};

/// State shared by the pollers of a lane.
struct LaneState {
  std::uint64_t taken;    ///< the next number to claim; kGone set: no more claims
  std::uint64_t present;  ///< pollers that have not left
};
inline constexpr std::uint64_t kGone = std::uint64_t{1} << 63;

inline FEEDRATE_HD LaneState lane_start(const LaneView& lane, unsigned pollers) {
  return {lane.parking->position, pollers};
}

/// A sequence of messages that one poller serves.
struct Claim {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
enum class Poll { nothing, claimed, gone };

/// One poller: a host thread, or the leading thread of a team on the GPU.
template <class Memory = SystemMemory>
class BasicLaneServer {
 public:
  FEEDRATE_HD BasicLaneServer(const LaneView& lane, LaneState* state) : lane_(lane), state_(state) {}

  /// By counter: claims up to `most` published messages in contiguous slots, but no more than the share of the waiting
  /// messages that each of `pollers` pollers gets.
  FEEDRATE_HD Poll poll(std::uint64_t most, unsigned pollers, Claim& claim) {
    while (true) {
      const std::uint64_t taken = next();
      if ((taken & kGone) != 0) return Poll::gone;
      if (published_ <= taken) {
        const std::uint64_t word = Memory::load_acquire(*lane_.ring.published);
        published_ = word & kCountMask;
        const bool ends = (word & kStopNow) != 0 || ((word & kStopWhenDone) != 0 && published_ == taken);
        if (ends && leave(taken)) return Poll::gone;
        if (published_ <= taken) return Poll::nothing;
      }
      const std::uint64_t share = (published_ - taken + pollers - 1) / pollers;
      const std::uint64_t count = lane_.ring.contiguous(taken, share < most ? share : most);
      if (take(taken, count)) {
        claim = {taken, count};
        return Poll::claimed;
      }
    }
  }
  /// The next number to claim; if kGone is set, the pollers have left.
  FEEDRATE_HD std::uint64_t next() { return Memory::lane_peek(state_->taken); }
  /// Returns false if another poller was faster.
  FEEDRATE_HD bool take(std::uint64_t number, std::uint64_t count) {
    return Memory::lane_exchange(state_->taken, number, number + count);
  }
  /// By flags: the caller has seen `count` complete messages starting at `first`, which was the next number to claim.
  /// Claims those that no other poller has claimed in the meantime; returns false if there are none.
  FEEDRATE_HD bool take_seen(std::uint64_t first, std::uint64_t count, Claim& claim) {
    const std::uint64_t end = first + count;
    for (std::uint64_t taken = next(); taken < end; taken = next()) {  // kGone is greater than any end
      if (!take(taken, end - taken)) continue;
      claim = {taken, end - taken};
      return true;
    }
    return false;
  }
  /// By flags: reads the `published` cursor, without ordering relative to the slots. The published messages may not be
  /// complete yet, but they will be.
  FEEDRATE_HD void read_hint() { hint_ = Memory::load_relaxed(*lane_.ring.published); }
  /// By flags: claims up to `most` of the published messages before they are seen, so that no other poller reads them
  /// needlessly. The claimer polls them until they are complete. Returns false if no messages are known to be waiting.
  FEEDRATE_HD bool take_hinted(std::uint64_t most, Claim& claim) {
    const std::uint64_t end = hint_ & kCountMask;  // masked here: the GPU waits for a load only at its first use
    for (std::uint64_t taken = next(); taken < end; taken = next()) {  // kGone is greater than any end
      const std::uint64_t waiting = end - taken, count = waiting < most ? waiting : most;
      if (!take(taken, count)) continue;
      claim = {taken, count};
      return true;
    }
    return false;
  }
  /// Ends all claiming if `number` is still the next number to claim; otherwise returns false.
  FEEDRATE_HD bool leave(std::uint64_t number) { return Memory::lane_exchange(state_->taken, number, number | kGone); }

  /// In order, by counter: announces that the claim's results are in their slots. Results of earlier claims may still
  /// be missing.
  FEEDRATE_HD void complete(const Claim& claim) {
    Memory::store_release(lane_.ends[lane_.ring.slot(claim.first)], claim.first + claim.count);
  }
  /// As they finish, by counter: announces the result of one message.
  FEEDRATE_HD void finish(std::uint64_t number) {
    Memory::store_release(lane_.finished[lane_.ring.slot(number)], static_cast<std::uint32_t>(number + 1));
  }

  /// Called once per poller, after its last claim is complete. The last poller parks the lane.
  FEEDRATE_HD void depart() {
    if (Memory::lane_decrement(state_->present) != 0) return;
    Memory::store_release(lane_.parking->position, next() & ~kGone);
    Memory::store_release(lane_.parking->parked, 1);
  }

 private:
  LaneView lane_;
  LaneState* state_;
  std::uint64_t published_ = 0, hint_ = 0;
};

using LaneServer = BasicLaneServer<>;

}  // namespace feedrate
