#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "common/device/device_clock.hpp"
#include "common/histogram.hpp"
#include "common/stages.hpp"

namespace feedrate {

/// A sampled message's times, as they were taken: of `on_device_clock` stages in the device's.
struct StageSample {
  std::uint64_t id = 0;
  std::uint64_t due = 0;  ///< in open load; in closed load it is due when it is sent
  StageTimes times{};
};

/// The same times, all in the host's clock.
StageTimes on_host_clock(const StageTimes&, const ClockMap&);

/// How long messages took to each stage, from the last before it whose time is known; ns. Every stage that any of them
/// has is recorded for all, with 0 where a message lacks it: so the stages' means add up to the mean of the whole.
std::array<Histogram, kStages> stage_times(std::span<const StageSample>, const ClockMap&);

}  // namespace feedrate
