#include "experiments/feeding/stage_times.hpp"

namespace feedrate {

StageDurations stage_durations(std::span<const StageSample> samples, const ClockMap& clock) {
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
