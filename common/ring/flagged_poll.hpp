#pragma once
#include "common/ring/lane.hpp"

namespace feedrate {

/// Polls a lane by ready flags on the host: it reads one slot after another, as a team of GPU threads does in parallel
/// (serve_flagged_many in kernels/serving/resident.cuh). It polls the slots themselves. If a poll covers several slots,
/// it also reads the `published` cursor and, before the next poll, claims the messages that the cursor announces, so
/// that pollers do not all read the same slots.
template <class Memory = SystemMemory>
class BasicFlaggedPoll {
 public:
  /// `most`: maximum number of messages per poll.
  BasicFlaggedPoll(const LaneView& lane, std::uint32_t mirror, std::uint32_t most)
      : lane_(lane), mirror_(mirror), max_(most) {}

  /// Copies of messages that are claimed and complete.
  struct Found {
    Claim claim;
    std::byte* at = nullptr;
  };
  /// `copies`: space for `most` messages at intervals of `in_stride`, plus one unit.
  Poll operator()(BasicLaneServer<Memory>& server, std::byte* copies, Found& found) {
    if (max_ > 1 && !holds()) server.take_hinted(max_, held_);
    const bool held = holds();
    const std::uint64_t first = held ? held_.first : server.next();
    if ((first & kGone) != 0) return Poll::gone;
    if (max_ > 1) server.read_hint();
    const std::uint64_t most = held ? held_.count : max_;
    std::uint64_t whole = 0;
    Flagged last = Flagged::complete;
    for (; whole < most; ++whole) {
      last = load_flagged<Memory>(lane_.unit_in(first + whole, mirror_), first + whole,
                                  copies + whole * lane_.ring.in_stride, lane_.in_units);
      if (last != Flagged::complete) break;
    }
    if (whole == 0) {
      if (last != Flagged::stop) return Poll::nothing;
      held_ = {};  // the stop flag has overwritten these messages
      return server.leave(first) ? Poll::gone : Poll::nothing;
    }
    if (held) {
      found.claim = {first, whole};
      held_ = {first + whole, held_.count - whole};
    } else if (!server.take_seen(first, whole, found.claim)) {
      return Poll::nothing;
    }
    found.at = copies + (found.claim.first - first) * lane_.ring.in_stride;
    return Poll::claimed;
  }
  /// Whether this poller has claimed messages that it has not yet seen complete; if so, it must not leave the lane.
  bool holds() const { return held_.count != 0; }

 private:
  LaneView lane_;
  std::uint32_t mirror_, max_;
  Claim held_;
};

using FlaggedPoll = BasicFlaggedPoll<>;

}  // namespace feedrate
