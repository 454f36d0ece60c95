#include "experiments/stage_times.hpp"

#include <algorithm>

namespace feedrate {

StageTimes on_host_clock(const StageTimes& times, const ClockMap& clock) {
  StageTimes all = times;
  for (std::size_t i = 0; i < kStages; ++i) {
    if (all[i] != 0 && on_device_clock(static_cast<Stage>(i))) all[i] = clock.to_host(all[i]);
  }
  return all;
}

std::array<Histogram, kStages> stage_times(std::span<const StageSample> samples, const ClockMap& clock) {
  std::array<Histogram, kStages> stages;
  std::array<bool, kStages> taken{};
  for (const StageSample& sample : samples) {
    for (std::size_t i = 0; i < kStages; ++i) taken[i] = taken[i] || sample.times[i] != 0;
  }
  for (const StageSample& sample : samples) {
    const StageTimes times = on_host_clock(sample.times, clock);
    std::uint64_t before = sample.due;
    for (std::size_t i = 0; i < kStages; ++i) {
      if (!taken[i]) continue;
      // A time that others have and this one has not (a broker's answer that was read too late) is none of its own, so
      // that the means of all stages add up. Another clock may be a little behind, and who says it may say it late.
      const std::uint64_t at = std::clamp(times[i], before, std::max(before, times.back()));
      stages[i].record(at - before);
      before = at;
    }
  }
  return stages;
}

}  // namespace feedrate
