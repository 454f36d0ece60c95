#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "common/device/clock_map.hpp"
#include "common/message/stages.hpp"
#include "experiments/harness/measure/histogram.hpp"

namespace feedrate {

/// Raw times of a sampled message; the times of `on_device_clock` stages are on the device's clock.
struct StageSample {
  std::uint64_t id = 0;
  std::uint64_t due = 0;  ///< due time in an open load; in a closed load, the time of sending
  StageTimes times{};
};

/// Times that messages took to reach each stage.
struct StageDurations {
  std::array<Histogram, kStages> stages;  ///< ns, since the previous stage
  std::uint64_t out_of_order = 0;         ///< times moved to the previous stage or the end to restore the order
  std::uint64_t max_out_of_order_ns = 0;
};
/// Calls `each(stage, begin ns, end ns, moved ns)` for the timed stages of a message, in order, with times on the
/// host's clock. Stages follow each other from the due time until collection; because clocks differ slightly, a time
/// outside this order is moved by `moved`.
template <class Each>
void for_each_stage(const StageSample& sample, const ClockMap& clock, Each&& each) {
  constexpr auto kBrokered = static_cast<std::size_t>(Stage::brokered), kDequeued = kBrokered + 1;
  StageTimes times = sample.times;
  // A broker's reply may be read late, even after the end: the broker had the message when a worker received it.
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

/// Each stage that occurs gets a value from every message, 0 if the message lacks the stage, so that the stages' means
/// add up to the mean of the total.
inline StageDurations stage_durations(std::span<const StageSample> samples, const ClockMap& clock) {
  StageDurations durations;
  std::array<std::uint64_t, kStages> taken{};
  constexpr auto kBrokered = static_cast<std::size_t>(Stage::brokered), kDequeued = kBrokered + 1;
  const bool brokered = std::any_of(samples.begin(), samples.end(), [](const auto& s) { return s.times[kBrokered]; });
  for (StageSample sample : samples) {
    // If a broker's reply was read after the end, use the latest possible time.
    if (brokered && sample.times[kBrokered] == 0) sample.times[kBrokered] = sample.times[kDequeued];
    for_each_stage(sample, clock, [&](Stage stage, std::uint64_t begin, std::uint64_t end, std::uint64_t moved) {
      const auto i = static_cast<std::size_t>(stage);
      durations.stages[i].record(end - begin);
      ++taken[i];
      durations.out_of_order += moved == 0 ? 0 : 1;
      durations.max_out_of_order_ns = std::max(durations.max_out_of_order_ns, moved);
    });
  }
  for (std::size_t i = 0; i < kStages; ++i) {
    if (taken[i] == 0) continue;
    for (std::uint64_t rest = taken[i]; rest < samples.size(); ++rest) durations.stages[i].record(0);
  }
  return durations;
}

}  // namespace feedrate
