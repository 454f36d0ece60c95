#pragma once
#include "common/ring/lane.hpp"

namespace feedrate {

/// How a poller on the host looks for messages by flags: it does slot after slot what a team of GPU threads does side
/// by side (serve_flagged_many of kernels/serving/resident.cuh). It looks at the slots themselves, and, where a look
/// takes in several, at the cursor beside them: what that says waits is claimed before the next look, so that pollers
/// don't all read the same slots.
template <class Memory = SystemMemory>
class BasicFlaggedLook {
 public:
  /// `most` messages at a look.
  BasicFlaggedLook(const LaneView& lane, std::uint32_t mirror, std::uint32_t most)
      : lane_(lane), mirror_(mirror), most_(most) {}

  /// Messages that are claimed and whole, copied.
  struct Found {
    Claim claim;
    std::byte* at = nullptr;
  };
  /// `copies`: room for `most` messages, `in_stride` apart, and a unit more.
  Look operator()(BasicLaneServer<Memory>& server, std::byte* copies, Found& found) {
    if (most_ > 1 && !holds()) server.take_hinted(most_, held_);
    const bool held = holds();
    const std::uint64_t first = held ? held_.first : server.next();
    if ((first & kGone) != 0) return Look::gone;
    if (most_ > 1) server.read_hint();
    const std::uint64_t most = held ? held_.count : most_;
    std::uint64_t whole = 0;
    Flagged last = Flagged::whole;
    for (; whole < most; ++whole) {
      last = load_flagged<Memory>(lane_.unit_in(first + whole, mirror_), first + whole,
                                  copies + whole * lane_.ring.in_stride, lane_.in_units);
      if (last != Flagged::whole) break;
    }
    if (whole == 0) {
      if (last != Flagged::stop) return Look::nothing;
      held_ = {};  // no longer there
      return server.leave(first) ? Look::gone : Look::nothing;
    }
    if (held) {
      found.claim = {first, whole};
      held_ = {first + whole, held_.count - whole};
    } else if (!server.take_seen(first, whole, found.claim)) {
      return Look::nothing;
    }
    found.at = copies + (found.claim.first - first) * lane_.ring.in_stride;
    return Look::claimed;
  }
  /// Messages are claimed that were not seen whole yet; the poller must not leave the lane.
  bool holds() const { return held_.count != 0; }

 private:
  LaneView lane_;
  std::uint32_t mirror_, most_;
  Claim held_;
};

using FlaggedLook = BasicFlaggedLook<>;

}  // namespace feedrate
