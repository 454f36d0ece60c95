#pragma once
#include <cstddef>
#include <cstdint>

#include "common/message/marks.hpp"

/// What a kernel is handed. Both the host and run-time compilers, which know no host headers, read this.
namespace feedrate {

/// Messages in one buffer, room for as many results in another; both in memory that the device can reach.
struct BatchView {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t in_stride = 0;
  std::uint32_t out_stride = 0;
  std::uint32_t count = 0;
  Marks marks = {};  ///< where whoever works on a sampled message notes when
  /// Of messages that lie close together instead of a stride apart: where each begins, and where the last one ends, in
  /// units of 16 bytes; the same of the results. The first begins at `in`, whatever its offset. None where the strides
  /// say it.
  const std::uint32_t* in_offsets = nullptr;
  const std::uint32_t* out_offsets = nullptr;

  FEEDRATE_HD std::size_t in_begin(std::uint32_t i) const { return begin(in_offsets, in_stride, i); }
  FEEDRATE_HD std::size_t out_begin(std::uint32_t i) const { return begin(out_offsets, out_stride, i); }
  FEEDRATE_HD const std::byte* in_at(std::uint32_t i) const { return in + in_begin(i); }
  FEEDRATE_HD std::byte* out_at(std::uint32_t i) const { return out + out_begin(i); }
  /// `n` of them, from `first` on.
  FEEDRATE_HD BatchView part(std::uint32_t first, std::uint32_t n) const {
    BatchView view = *this;
    view.in = in_at(first);
    view.out = out_at(first);
    view.count = n;
    if (in_offsets != nullptr) view.in_offsets += first;
    if (out_offsets != nullptr) view.out_offsets += first;
    return view;
  }

 private:
  FEEDRATE_HD static std::size_t begin(const std::uint32_t* offsets, std::uint32_t stride, std::uint32_t i) {
    return offsets != nullptr ? std::size_t{offsets[i] - offsets[0]} * 16 : std::size_t{i} * stride;
  }
};

/// Who works on one message of a lane; `automatic` chooses by the messages' size.
enum class Granularity : std::uint32_t { automatic, thread, warp, block };

/// How pollers wait when nothing comes.
struct IdlePolicy {
  bool backs_off = false;  ///< sleeps longer and longer between looks, up to 4 us
  /// Leaves the device then. Whatever the policy, a lane that nobody feeds must end some day, so that a host that died
  /// can't leave the GPU busy for ever.
  std::uint64_t leave_after_ns = 30'000'000'000;
};

/// What serves each lane: one block, its threads split evenly among pollers.
struct ResidentShape {
  unsigned block = 256;  ///< threads
  unsigned pollers = 1;  ///< teams of whole warps, at most kMostPollers
  Granularity granularity = Granularity::automatic;
  unsigned flagged_at_once = 1;  ///< flagged messages that a look may take in
  IdlePolicy idle = {};
};
inline constexpr unsigned kMostPollers = 16;  // a block's named barriers

}  // namespace feedrate
