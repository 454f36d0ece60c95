#pragma once
#include <cstdint>

#include "common/message/message.hpp"

namespace feedrate {

/// Opaque words in a lane or batch for kernels that record when they work on sampled messages. Only the kernel knows
/// their meaning (Kernel::KernelRecorder); all other code merely passes them on.
struct RecorderState {
  std::uint64_t words[4] = {};   ///< if the first is 0, nothing is recorded
  std::uint64_t claimed_ns = 0;  ///< claim time of the current messages, on the device's clock; 0: no claims

  FEEDRATE_HD bool wanted() const { return words[0] != 0; }
};

/// The recorder of a kernel that records nothing, at no cost. Every other recorder has the same members.
struct NoRecorder {
  FEEDRATE_HD explicit NoRecorder(const RecorderState&) {}
  /// Whether any message is recorded.
  FEEDRATE_HD constexpr bool wanted() const { return false; }
  FEEDRATE_HD void claimed(std::uint64_t /*ns*/) {}
  /// Whether this message is recorded.
  FEEDRATE_HD constexpr bool samples(std::uint64_t /*id*/) const { return false; }
  /// Called for a sampled message by one of the threads that share it: begin() before the functor, end() after it.
  FEEDRATE_HD void begin(std::uint64_t /*id*/) const {}
  FEEDRATE_HD void end(std::uint64_t /*id*/) const {}
};

}  // namespace feedrate
