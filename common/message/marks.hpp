#pragma once
#include <cstdint>

#include "common/message/message.hpp"

namespace feedrate {

/// Room in a lane and in a batch for what a kernel needs that notes when it works on sampled messages. Only that kernel
/// knows what the words mean (Kernel::KernelMarks); others carry them.
struct Marks {
  std::uint64_t words[4] = {};   ///< nothing is noted when the first is 0
  std::uint64_t claimed_ns = 0;  ///< when the messages at hand were claimed, by the device's clock; 0: nobody claims

  FEEDRATE_HD bool wanted() const { return words[0] != 0; }
};

/// The marks of a kernel that notes nothing, which cost nothing. Any other type has the same members.
struct NoMarks {
  FEEDRATE_HD explicit NoMarks(const Marks&) {}
  /// Whether any message is noted.
  FEEDRATE_HD constexpr bool wanted() const { return false; }
  FEEDRATE_HD void claimed(std::uint64_t /*ns*/) {}
  /// Whether this message is noted.
  FEEDRATE_HD constexpr bool samples(std::uint64_t /*id*/) const { return false; }
  /// Of a sampled message, by one of the threads that share it: before and after the functor.
  FEEDRATE_HD void begin(std::uint64_t /*id*/) const {}
  FEEDRATE_HD void end(std::uint64_t /*id*/) const {}
};

}  // namespace feedrate
