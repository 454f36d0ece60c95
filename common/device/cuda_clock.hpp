#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <optional>

#include "common/device/device.hpp"

namespace feedrate {

struct ClockWords;

/// Relates a GPU's `globaltimer` to the host's clock, and converts event times to `globaltimer`.
///
/// For a few milliseconds, a GPU thread and a host thread publish their clocks to each other through pinned memory. A
/// value that one side reads was the other side's time a moment earlier, so each exchange bounds the difference between
/// the clocks from one side. The tightest bounds from thousands of exchanges are kept. The width of the remaining
/// interval is the sum of the shortest transfer times in the two directions (about a microsecond over PCIe); its
/// midpoint is used. The method is NTP's minimum filter (RFC 5905, section 10), applied to each direction separately.
class CudaClock {
 public:
  CudaClock();
  ~CudaClock();
  CudaClock(const CudaClock&) = delete;
  CudaClock& operator=(const CudaClock&) = delete;

  /// Throws Failure if the clocks cannot be exchanged: because launches block until their kernel ends
  /// (CUDA_LAUNCH_BLOCKING, profilers), or because the tick of the GPU's clock is longer than the transfer of a word.
  ClockReading read();
  /// Time at which a recorded event became ready, in ns of `globaltimer`. Its error is at most the last reading's
  /// `events_within_ns` plus a ten-millionth of the time since that reading (CUDA gives event times as a float in
  /// milliseconds). 0 before the first `read`.
  std::uint64_t ready_ns(cudaEvent_t event) const;

 private:
  std::optional<ClockReading> exchange_clocks();
  /// Determines the `globaltimer` time of an event; returns its uncertainty in ns.
  double anchor();

  cudaStream_t stream_ = nullptr;
  ClockWords* words_ = nullptr;
  cudaEvent_t anchor_ = nullptr, next_ = nullptr, after_ = nullptr;
  std::uint64_t anchor_ns_ = 0;
};

}  // namespace feedrate
