#pragma once
#include <algorithm>

#include "variants/feeding/transfer.hpp"

/// What the limits of a GPU say of ways to move batches.
namespace feedrate {

/// One worker thread queues work on a GPU no faster than this many launches per second; each launch serves `coalesced`
/// batches.
inline void limit_by_launches(const Bounded& bounded, Bounds& bounds, unsigned coalesced = 1) {
  const Expression launches = batches_at_once(bounded.point) * ceiling_of("launch_per_second");
  bounds.rate(coalesced == 1 ? launches : given("coalesce", coalesced) * launches);
}

/// Copies by the copy engines, with a kernel between.
inline void limit_by_copies(const Bounded& bounded, Bounds& bounds, unsigned coalesced = 1) {
  bounds.time("copy_launch_copy_ns");
  bounds.bytes("copy_engine_both_bytes_per_second", bounded.slot());
  limit_by_launches(bounded, bounds, coalesced);
}

/// Of a batch over a bus with this ceiling, in ns.
inline std::optional<double> bus_ns(const Bounded& bounded, const Limits& limits, const std::string& ceiling) {
  const auto rate = value_of(limits, ceiling);
  if (!rate) return std::nullopt;
  return bounded.slot() * static_cast<double>(bounded.point.batch) / *rate * 1e9;
}

/// A copy in, a launch and a copy out for each `coalesced` batches.
inline std::optional<Effort> effort_of_copies(const Bounded& bounded, const Limits& limits, unsigned coalesced = 1) {
  const auto launches = value_of(limits, "launch_per_second"), copy = value_of(limits, "copy_queued_ns");
  const auto lone = value_of(limits, "copy_launch_copy_ns");
  const auto bus = bus_ns(bounded, limits, "copy_engine_both_bytes_per_second");
  if (!launches || !copy || !lone || !bus) return std::nullopt;
  const double calls = (1e9 / *launches + 2 * *copy) / coalesced;
  return Effort{std::max(calls, *bus), *lone + 2 * *bus};
}

}  // namespace feedrate
