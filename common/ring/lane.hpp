#pragma once
#include "common/message/marks.hpp"
#include "common/ring/flags.hpp"
#include "common/ring/ring.hpp"

/// A lane: one ring served by several pollers at once (teams of GPU threads in one block, or host threads), that may
/// leave when nothing comes and be called back.
///
/// Pollers share a LaneState. Whoever finds messages claims them by moving `taken` on; each message is claimed once.
/// Results are handed over in one of three ways:
///   - in order, by counter: a word a slot (`ends`) says where the claim that began there ends; the collector goes from
///     claim to claim, and no poller waits for another;
///   - as they finish, by counter: a word a slot (`finished`) holds the number of the message whose result lies there;
///   - by flags: the result's units carry its number (flags.hpp). In order or not is the collector's choice then.
///
/// Leaving is a claim, too: of everything, for ever. So it can't happen while messages are claimed unseen, and no claim
/// can happen after it. The last poller to go writes how far the lane has come and then `parked`; who waits for results
/// and sees `parked` with messages published calls the pollers back.
namespace feedrate {

enum class Notify : std::uint32_t { counter, flags };
enum class ResultOrder : std::uint32_t { in_order, as_finished };

/// Written by the last poller that leaves, read by whoever calls them back.
struct LaneParking {
  std::uint64_t position;  ///< the number of the next message to serve
  std::uint64_t parked;    ///< 0 while served
};

struct LaneView {
  /// `in`, `out` and the strides are of messages by counter. `completed` is the collector's, for others on the host who
  /// ask how far claims are done; in order by counter only.
  RingView ring;
  /// A word a slot, by counter. In order: where the claim that began at this number ends, once its results are there.
  /// 64 bits, as a slot may be the first of no claim for any number of laps, and keeps what it said of an earlier one.
  std::uint64_t* ends = nullptr;
  std::uint32_t* finished = nullptr;  ///< as they finish: number + 1, written every lap
  LaneParking* parking = nullptr;
  Unit* flagged_in = nullptr;  ///< slots of units, where messages are notified by flags
  Unit* flagged_out = nullptr;
  std::uint32_t in_units = 0, out_units = 0;            ///< of a slot that is full
  std::uint32_t in_slot_units = 0, out_slot_units = 0;  ///< from one slot to the next
  /// Copies of the incoming slots, written one after the other and watched by different pollers: the GPU has one read
  /// of a line under way at a time or two, so that more pollers need more lines to look at.
  std::uint32_t mirrors = 1;
  std::uint32_t mirror_units = 0;  ///< from one copy to the next
  Notify notify = Notify::counter;
  ResultOrder results = ResultOrder::in_order;
  Marks marks = {};  ///< where the pollers note when they work on sampled messages

  FEEDRATE_HD Unit* unit_in(std::uint64_t number, std::uint32_t mirror) const {
    return flagged_in + std::size_t{mirror} * mirror_units + ring.slot(number) * in_slot_units;
  }
  FEEDRATE_HD Unit* unit_out(std::uint64_t number) const { return flagged_out + ring.slot(number) * out_slot_units; }
};

/// What the pollers of a lane share.
struct LaneState {
  std::uint64_t taken;    ///< the next number to claim; with kGone: no more claims
  std::uint64_t present;  ///< pollers that have not left
};
inline constexpr std::uint64_t kGone = std::uint64_t{1} << 63;

inline FEEDRATE_HD LaneState lane_start(const LaneView& lane, unsigned pollers) {
  return {lane.parking->position, pollers};
}

/// A run of messages that one poller serves.
struct Claim {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
enum class Look { nothing, claimed, gone };

/// One poller: a host thread, or the leading thread of a team on the GPU.
template <class Memory = SystemMemory>
class BasicLaneServer {
 public:
  FEEDRATE_HD BasicLaneServer(const LaneView& lane, LaneState* state) : lane_(lane), state_(state) {}

  /// By counter: claims published messages that lie side by side, up to `most`, and leaves a share of what waits to the
  /// other `pollers`.
  FEEDRATE_HD Look look(std::uint64_t most, unsigned pollers, Claim& claim) {
    while (true) {
      const std::uint64_t taken = next();
      if ((taken & kGone) != 0) return Look::gone;
      if (published_ <= taken) {
        const std::uint64_t word = Memory::load_acquire(*lane_.ring.published);
        published_ = word & kCountMask;
        const bool ends = (word & kStopNow) != 0 || ((word & kStopWhenDone) != 0 && published_ == taken);
        if (ends && leave(taken)) return Look::gone;
        if (published_ <= taken) return Look::nothing;
      }
      const std::uint64_t share = (published_ - taken + pollers - 1) / pollers;
      const std::uint64_t count = lane_.ring.contiguous(taken, share < most ? share : most);
      if (take(taken, count)) {
        claim = {taken, count};
        return Look::claimed;
      }
    }
  }
  /// The number to wait for next; with kGone set, the pollers have left.
  FEEDRATE_HD std::uint64_t next() { return Memory::lane_peek(state_->taken); }
  /// False: another poller was faster.
  FEEDRATE_HD bool take(std::uint64_t number, std::uint64_t count) {
    return Memory::lane_exchange(state_->taken, number, number + count);
  }
  /// By flags: `count` messages from `first` on, which was the next to claim, were seen whole. Claims those of them
  /// that nobody has claimed meanwhile; false: there are none.
  FEEDRATE_HD bool take_seen(std::uint64_t first, std::uint64_t count, Claim& claim) {
    const std::uint64_t end = first + count;
    for (std::uint64_t taken = next(); taken < end; taken = next()) {  // kGone is beyond any end
      if (!take(taken, end - taken)) continue;
      claim = {taken, end - taken};
      return true;
    }
    return false;
  }
  /// By flags: reads the cursor, in no order with the slots. What is published will be seen whole by and by …
  FEEDRATE_HD void read_hint() { hint_ = Memory::load_relaxed(*lane_.ring.published); }
  /// … so up to `most` of that may be claimed unseen, and no other poller reads them in vain. The claimer looks at them
  /// until they are whole. False: nothing is known to wait.
  FEEDRATE_HD bool take_hinted(std::uint64_t most, Claim& claim) {
    const std::uint64_t end = hint_ & kCountMask;  // worked out here, as the GPU does not wait for the word before
    for (std::uint64_t taken = next(); taken < end; taken = next()) {  // kGone is beyond any end
      const std::uint64_t waiting = end - taken, count = waiting < most ? waiting : most;
      if (!take(taken, count)) continue;
      claim = {taken, count};
      return true;
    }
    return false;
  }
  /// Ends all claiming, if `number` is still the next; false if not.
  FEEDRATE_HD bool leave(std::uint64_t number) { return Memory::lane_exchange(state_->taken, number, number | kGone); }

  /// In order, by counter: the claim's results are in their slots. Earlier claims' need not be.
  FEEDRATE_HD void complete(const Claim& claim) {
    Memory::store_release(lane_.ends[lane_.ring.slot(claim.first)], claim.first + claim.count);
  }
  /// As they finish, by counter: marks one message.
  FEEDRATE_HD void finish(std::uint64_t number) {
    Memory::store_release(lane_.finished[lane_.ring.slot(number)], static_cast<std::uint32_t>(number + 1));
  }

  /// Once, after this poller's last claim is complete. The last one parks the lane.
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
