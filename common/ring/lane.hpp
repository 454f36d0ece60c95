#pragma once
#include <vector>

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

/// The host's way in. One thread at a time.
template <class Memory = SystemMemory>
class BasicLaneProducer {
 public:
  /// `most` messages at once.
  BasicLaneProducer(const LaneView& lane, std::size_t most)
      : lane_(lane),
        direct_(lane.ring),
        room_(lane.ring),
        most_(most),
        copies_(lane.notify == Notify::flags ? most * lane.ring.in_stride + sizeof(Unit) : 0) {}
  /// Up to `n` messages to write, side by side; empty when the ring is full.
  Messages reserve(std::uint64_t n) {
    n = n < most_ ? n : most_;
    if (lane_.notify == Notify::counter) return direct_.reserve(n);
    return {copies_.data(), lane_.ring.in_stride, room_.room(n)};
  }
  void publish(std::uint64_t n) {
    if (lane_.notify == Notify::counter) return direct_.publish(n);
    const std::uint64_t first = room_.published();
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::byte* message = copies_.data() + i * lane_.ring.in_stride;
      const std::size_t length = payload_bytes(*reinterpret_cast<const Header*>(message));
      // A message that says it is longer than its slot goes as far as the slot does, and fails there.
      const std::uint32_t units = units_of(sizeof(Header) + length);
      for (std::uint32_t mirror = 0; mirror < lane_.mirrors; ++mirror) {
        store_flagged<Memory>(lane_.unit_in(first + i, mirror), first + i, message,
                              units < lane_.in_units ? units : lane_.in_units);
      }
    }
    room_.publish(n);
  }
  std::uint64_t published() const { return lane_.notify == Notify::counter ? direct_.published() : room_.published(); }

 private:
  LaneView lane_;
  BasicRingProducer<Memory> direct_;
  BasicRingRoom<Memory> room_;
  std::size_t most_;
  std::vector<std::byte> copies_;  // of messages to be flagged
};

/// In order, by counter: how far results are there without a gap, from where a claim begins, and looking no further
/// than `enough`. A claim lies side by side, so what an earlier lap left in a slot ends there at the latest; and no
/// later lap has begun, as slots are not free before the collector has gone on.
template <class Memory = SystemMemory>
std::uint64_t completed_from(const LaneView& lane, std::uint64_t number, std::uint64_t enough) {
  while (number < enough) {
    const std::uint64_t end = Memory::load_acquire(lane.ends[lane.ring.slot(number)]);
    if (end <= number) break;
    number = end;
  }
  return number;
}

/// The host's way out. One thread at a time.
template <class Memory = SystemMemory>
class BasicLaneCollector {
 public:
  /// `most` results at once.
  BasicLaneCollector(const LaneView& lane, std::size_t most)
      : lane_(lane),
        most_(most),
        copies_(lane.notify == Notify::flags ? most * out_stride() + sizeof(Unit) : 0),
        handed_over_(lane.results == ResultOrder::as_finished ? lane.ring.capacity : 0) {}
  /// The next results, side by side, at most `n`; empty when there is none. They stay until released.
  ConstMessages poll(std::uint64_t n) {
    n = n < most_ ? n : most_;
    if (lane_.results == ResultOrder::as_finished) return poll_finished(n);
    if (lane_.notify == Notify::counter) return poll_in_order(n);
    return {copies_.data(), out_stride(), take_flagged(released_, n)};
  }
  void release(std::uint64_t n) {
    if (lane_.results == ResultOrder::as_finished) return release_finished(n);
    released_ += n;
    Memory::store_release(*lane_.ring.released, released_);
  }

 private:
  std::uint32_t out_stride() const { return lane_.ring.out_stride; }
  ConstMessages poll_in_order(std::uint64_t n) {
    const std::uint64_t completed = completed_from<Memory>(lane_, completed_, released_ + n);
    if (completed != completed_) Memory::store_release(*lane_.ring.completed, completed_ = completed);
    const std::uint64_t ready = completed_ - released_;
    return {lane_.ring.out_slot(released_), out_stride(), lane_.ring.contiguous(released_, ready < n ? ready : n)};
  }
  std::uint64_t take_flagged(std::uint64_t first, std::uint64_t n) {
    if (partly_ != first) partly_ = first, units_done_ = 0;
    std::uint64_t ready = 0;
    for (; ready < n && !handed_over(first + ready); ++ready) {
      std::uint32_t none = 0;
      // The first one is read as it comes in, so that little is left to read when it is whole.
      if (load_flagged<Memory>(lane_.unit_out(first + ready), first + ready, copies_.data() + ready * out_stride(),
                               lane_.out_units, ready == 0 ? units_done_ : none) != Flagged::whole) {
        break;
      }
    }
    return ready;
  }
  bool finished(std::uint64_t number) {
    if (lane_.notify == Notify::flags) return Memory::load_unit(*lane_.unit_out(number)).flag == flag_of(number);
    return Memory::load_acquire(lane_.finished[lane_.ring.slot(number)]) == static_cast<std::uint32_t>(number + 1);
  }
  bool handed_over(std::uint64_t number) const {
    return !handed_over_.empty() && handed_over_[lane_.ring.slot(number)] != 0;
  }

  /// Looks through what is under way, from where it stopped the last time, for the first run of finished messages.
  ConstMessages poll_finished(std::uint64_t n) {
    const std::uint64_t published = Memory::load_relaxed(*lane_.ring.published) & kCountMask;
    if (scan_ < released_ || scan_ >= published) scan_ = released_;
    while (scan_ < published && (handed_over(scan_) || !finished(scan_))) ++scan_;
    std::uint64_t ready = 0;
    const std::uint64_t most = lane_.ring.contiguous(scan_, n < published - scan_ ? n : published - scan_);
    if (lane_.notify == Notify::flags) {
      ready = take_flagged(scan_, most);
      return {copies_.data(), out_stride(), ready};
    }
    while (ready < most && !handed_over(scan_ + ready) && finished(scan_ + ready)) ++ready;
    return {lane_.ring.out_slot(scan_), out_stride(), ready};
  }
  void release_finished(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) handed_over_[lane_.ring.slot(scan_++)] = 1;
    const std::uint64_t before = released_;
    for (; handed_over(released_); ++released_) handed_over_[lane_.ring.slot(released_)] = 0;
    if (released_ != before) Memory::store_release(*lane_.ring.released, released_);
  }

  LaneView lane_;
  std::size_t most_;
  std::vector<std::byte> copies_;  // of flagged results
  std::vector<char> handed_over_;  // by slot: results taken before an earlier one
  std::uint64_t partly_ = 0;       // the number of the result that lies first in the copies, so far
  std::uint32_t units_done_ = 0;
  std::uint64_t released_ = 0, completed_ = 0, scan_ = 0;
};

/// Lets the pollers of a lane end: at once, or (by counter) when all that is published is served. For when the producer
/// will publish nothing more; flags have no order in which to say "after those", so there the caller waits for the
/// results first.
template <class Memory = SystemMemory>
void stop_lane(const LaneView& lane, std::uint64_t how) {
  request_stop<Memory>(lane.ring, how);
  if (lane.notify == Notify::counter) return;
  for (std::uint32_t mirror = 0; mirror < lane.mirrors; ++mirror) {
    for (std::uint64_t slot = 0; slot < lane.ring.capacity; ++slot) {
      Memory::store_unit(*lane.unit_in(slot, mirror), Unit{{}, kStopFlag});
    }
  }
}

using LaneServer = BasicLaneServer<>;
using LaneProducer = BasicLaneProducer<>;
using LaneCollector = BasicLaneCollector<>;

}  // namespace feedrate
