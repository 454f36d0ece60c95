#pragma once
#include <vector>

#include "common/ring/lane.hpp"

/// The host's two ends of a lane: producer and collector, by counter or by flags.
namespace feedrate {

/// The host's input to a lane. For use by one thread at a time.
template <class Memory = SystemMemory>
class BasicLaneProducer {
 public:
  /// `most`: maximum number of messages per call of reserve().
  BasicLaneProducer(const LaneView& lane, std::size_t most)
      : lane_(lane),
        direct_(lane.ring),
        room_(lane.ring),
        max_(most),
        copies_(lane.notify == Notify::flags ? most * lane.ring.in_stride + sizeof(Unit) : 0) {}
  /// Returns contiguous space for up to `n` messages; empty if the ring is full.
  Messages reserve(std::uint64_t n) {
    n = n < max_ ? n : max_;
    if (lane_.notify == Notify::counter) return direct_.reserve(n);
    return {copies_.data(), lane_.ring.in_stride, room_.room(n)};
  }
  void publish(std::uint64_t n) {
    if (lane_.notify == Notify::counter) return direct_.publish(n);
    const std::uint64_t first = room_.published();
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::byte* message = copies_.data() + i * lane_.ring.in_stride;
      const std::size_t length = payload_bytes(*reinterpret_cast<const Header*>(message));
      // A message whose length exceeds its slot is written up to the end of the slot; serving it then fails.
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
  std::size_t max_;
  std::vector<std::byte> copies_;  // messages to be written with flags
};

/// In order, by counter: returns the number up to which results are complete without a gap, starting at `number`, where
/// a claim begins; stops at `enough`. A claim is contiguous, so a value that an earlier lap left in a slot is never
/// greater than the slot's current number. No later lap has begun, because slots are not free until the collector has
/// released them.
template <class Memory = SystemMemory>
std::uint64_t completed_from(const LaneView& lane, std::uint64_t number, std::uint64_t enough) {
  while (number < enough) {
    const std::uint64_t end = Memory::load_acquire(lane.ends[lane.ring.slot(number)]);
    if (end <= number) break;
    number = end;
  }
  return number;
}

/// The host's output of a lane. For use by one thread at a time.
template <class Memory = SystemMemory>
class BasicLaneCollector {
 public:
  /// `most`: maximum number of results per call of poll().
  BasicLaneCollector(const LaneView& lane, std::size_t most)
      : lane_(lane),
        max_(most),
        copies_(lane.notify == Notify::flags ? most * out_stride() + sizeof(Unit) : 0),
        handed_over_(lane.results == ResultOrder::as_finished ? lane.ring.capacity : 0) {}
  /// Returns up to `n` of the next results, contiguous; empty if there are none. Results stay valid until released.
  ConstMessages poll(std::uint64_t n) {
    n = n < max_ ? n : max_;
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
      // The first result is read as it arrives, so that little is left to read when it is complete.
      if (load_flagged<Memory>(lane_.unit_out(first + ready), first + ready, copies_.data() + ready * out_stride(),
                               lane_.out_units, ready == 0 ? units_done_ : none) != Flagged::complete) {
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

  /// Searches the messages in flight for the first sequence of finished ones, starting where the last search stopped.
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
  std::size_t max_;
  std::vector<std::byte> copies_;  // copies of flagged results
  std::vector<char> handed_over_;  // indexed by slot: results that were returned before an earlier result
  std::uint64_t partly_ = 0;       // the number of the partly read result at the start of copies_
  std::uint32_t units_done_ = 0;
  std::uint64_t released_ = 0, completed_ = 0, scan_ = 0;
};

/// Stops the pollers of a lane: at once or, by counter, after all published messages are served. Call it when the
/// producer will publish no more messages. Flags have no order that could express "after those messages", so with flags
/// the caller waits for the results first.
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

using LaneProducer = BasicLaneProducer<>;
using LaneCollector = BasicLaneCollector<>;

}  // namespace feedrate
