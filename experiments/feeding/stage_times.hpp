#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "common/device/clock_map.hpp"
#include "common/message/stages.hpp"
#include "experiments/harness/measure/histogram.hpp"

namespace feedrate {

/// A sampled message's times, as they were taken: of `on_device_clock` stages in the device's.
struct StageSample {
  std::uint64_t id = 0;
  std::uint64_t due = 0;  ///< in open load; in closed load it is due when it is sent
  StageTimes times{};
};

/// How long messages took to each stage.
struct StageDurations {
  std::array<Histogram, kStages> stages;  ///< ns, from the last stage before it
  std::uint64_t out_of_order = 0;         ///< times that lay before the last or behind the end, and were moved there
  std::uint64_t most_out_of_order_ns = 0;
};
/// Every stage that any of them has is recorded for all, with 0 where a message lacks it: so the stages' means add up
/// to the mean of the whole.
StageDurations stage_durations(std::span<const StageSample>, const ClockMap&);

/// Calls `each(stage, begin ns, end ns, moved ns)` for the stages of a message that were timed, in the order of its
/// way, all on the host's clock. They follow each other from when it was due until it was collected, so a time that
/// lies outside is moved by `moved`: clocks differ by a little.
template <class Each>
void for_each_stage(const StageSample& sample, const ClockMap& clock, Each&& each) {
  constexpr auto kBrokered = static_cast<std::size_t>(Stage::brokered), kDequeued = kBrokered + 1;
  StageTimes times = sample.times;
  // A broker's answer is read late, or not before all is over: it had the message when a worker got it.
  if (times[kBrokered] != 0) times[kBrokered] = std::min(times[kBrokered], std::max(times[kDequeued], times[0]));
  const std::uint64_t end = std::max(sample.due, times.back());
  std::uint64_t before = sample.due;
  for (std::size_t i = 0; i < kStages; ++i) {
    if (times[i] == 0) continue;
    const std::uint64_t taken = on_device_clock(static_cast<Stage>(i)) ? clock.to_host(times[i]) : times[i];
    const std::uint64_t at = std::clamp(taken, before, end);
    each(static_cast<Stage>(i), before, at, taken > at ? taken - at : at - taken);
    before = at;
  }
}

}  // namespace feedrate
