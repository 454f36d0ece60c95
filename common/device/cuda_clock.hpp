#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <optional>

#include "common/device/device.hpp"

namespace feedrate {

struct ClockWords;

/// A GPU's `globaltimer` beside the host's clock, and events' times in it.
///
/// A thread of the GPU and one of the host show each other their clocks through pinned memory for some milliseconds.
/// What the host reads there was the GPU's time at a moment before; what the GPU reads was the host's. Each exchange so
/// bounds the difference from one side, and the narrowest of thousands are kept: what remains is the shortest time that
/// a word takes there plus the shortest that one takes back (about a microsecond over PCIe), and the middle is taken.
/// The same idea as NTP's minimum filter (RFC 5905, section 10), with the two directions filtered apart.
class CudaClock {
 public:
  CudaClock();
  ~CudaClock();
  CudaClock(const CudaClock&) = delete;
  CudaClock& operator=(const CudaClock&) = delete;

  /// Throws Failure when the two can't talk: launches that wait for their end (CUDA_LAUNCH_BLOCKING, profilers), or a
  /// clock that ticks more coarsely than a word takes.
  ClockReading read();
  /// When a recorded event was ready, in ns of `globaltimer`; right within the last reading's `events_within_ns`, and a
  /// ten-millionth of the time since it (an event's time is a float of milliseconds). 0 before the first `read`.
  std::uint64_t ready_ns(cudaEvent_t event) const;

 private:
  std::optional<ClockReading> exchange_clocks();
  /// Sets an event beside `globaltimer`, and returns within how many ns.
  double anchor();

  cudaStream_t stream_ = nullptr;
  ClockWords* words_ = nullptr;
  cudaEvent_t anchor_ = nullptr, next_ = nullptr, after_ = nullptr;
  std::uint64_t anchor_ns_ = 0;
};

}  // namespace feedrate
