#pragma once
#include <cstddef>
#include <cstdint>

#include "common/message/recorder.hpp"

/// Arguments of kernels. Run-time compilers, which have no host headers, also compile this header.
namespace feedrate {

/// Messages in one buffer and space for the same number of results in another, both in memory that the device can
/// access.
struct BatchView {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t in_stride = 0;
  std::uint32_t out_stride = 0;
  std::uint32_t count = 0;
  RecorderState recorder = {};  ///< where the times of work on sampled messages are recorded
  /// For messages packed without a fixed stride: the offset of each message, and the end of the last one, in units of
  /// 16 bytes; likewise for the results. The first message begins at `in`, whatever its offset. Null if the strides
  /// apply.
  const std::uint32_t* in_offsets = nullptr;
  const std::uint32_t* out_offsets = nullptr;

  FEEDRATE_HD std::size_t in_begin(std::uint32_t i) const { return begin(in_offsets, in_stride, i); }
  FEEDRATE_HD std::size_t out_begin(std::uint32_t i) const { return begin(out_offsets, out_stride, i); }
  FEEDRATE_HD const std::byte* in_at(std::uint32_t i) const { return in + in_begin(i); }
  FEEDRATE_HD std::byte* out_at(std::uint32_t i) const { return out + out_begin(i); }
  /// Returns `n` of the messages, starting at `first`.
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

/// Threads that share the work on one message of a lane; `automatic` chooses by message size.
enum class Granularity : std::uint32_t { automatic, thread, warp, block };

/// How pollers wait when no messages arrive.
struct IdlePolicy {
  bool backs_off = false;  ///< sleeps increasingly long between polls, up to 4 us
  /// Idle time after which pollers leave the device. Under every policy, pollers of an unfed lane eventually leave, so
  /// that a host process that died cannot keep the GPU busy forever.
  std::uint64_t leave_after_ns = 30'000'000'000;
};

/// Shape of the block that serves each lane: its threads are split evenly among the pollers.
struct ResidentShape {
  unsigned block = 256;  ///< threads
  unsigned pollers = 1;  ///< teams, each of one or more full warps; at most kMaxPollers
  Granularity granularity = Granularity::automatic;
  unsigned max_flagged_per_poll = 1;  ///< maximum number of flagged messages per poll
  IdlePolicy idle = {};
};
inline constexpr unsigned kMaxPollers = 16;  // the number of a block's named barriers

}  // namespace feedrate
