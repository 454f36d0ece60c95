#pragma once
#include <algorithm>

#include "variants/feeding/transfer.hpp"

/// What the floors of a GPU say of ways to move batches.
namespace feedrate {

/// One worker thread queues work on a GPU no faster than so many launches a second; each launch serves `coalesced`
/// batches.
inline void limit_by_launches(const Bounded& bounded, Limits& limits, unsigned coalesced = 1) {
  const auto launches = limits.floor("launch_per_second");
  const auto at_once = static_cast<double>(bounded.point.workers * bounded.point.batch * coalesced);
  limits.rate(coalesced == 1 ? "batch*launch_per_second" : "coalesce*batch*launch_per_second",
              launches ? std::optional(at_once * *launches) : std::nullopt);
}

/// Copies by the copy engines, with a kernel between.
inline void limit_by_copies(const Bounded& bounded, Limits& limits, unsigned coalesced = 1) {
  limits.time("copy_launch_copy_ns");
  limits.bytes("copy_engine_both_bytes_per_second", bounded.slot());
  limit_by_launches(bounded, limits, coalesced);
}

inline std::optional<double> floor_of(const Floors& floors, const std::string& name) {
  const auto found = floors.find(name);
  return found == floors.end() ? std::nullopt : std::optional(found->second);
}

/// Of a batch over a bus with this floor, in ns.
inline std::optional<double> bus_ns(const Bounded& bounded, const Floors& floors, const std::string& floor) {
  const auto rate = floor_of(floors, floor);
  if (!rate) return std::nullopt;
  return bounded.slot() * static_cast<double>(bounded.point.batch) / *rate * 1e9;
}

/// A copy in, a launch and a copy out for each `coalesced` batches.
inline std::optional<Effort> effort_of_copies(const Bounded& bounded, const Floors& floors, unsigned coalesced = 1) {
  const auto launches = floor_of(floors, "launch_per_second"), copy = floor_of(floors, "copy_queued_ns");
  const auto lone = floor_of(floors, "copy_launch_copy_ns");
  const auto bus = bus_ns(bounded, floors, "copy_engine_both_bytes_per_second");
  if (!launches || !copy || !lone || !bus) return std::nullopt;
  const double calls = (1e9 / *launches + 2 * *copy) / coalesced;
  return Effort{std::max(calls, *bus), *lone + 2 * *bus};
}

}  // namespace feedrate
