#pragma once
#include <algorithm>

#include "variants/feeding/transfer.hpp"

/// Bounds and times of ways to move batches, derived from a GPU's limits.
namespace feedrate {

/// Bound by launches: a worker thread queues no more launches per second than the ceiling; each launch serves
/// `coalesced` batches.
inline void limit_by_launches(const BoundedPoint& bounded, Bounds& bounds, unsigned coalesced = 1) {
  const Expression launches = batches_at_once(bounded.point) * ceiling_of("launch_per_second");
  bounds.rate(coalesced == 1 ? launches : given("coalesce", coalesced) * launches);
}

/// Bounds of copies by the copy engines, with a kernel in between.
inline void limit_by_copies(const BoundedPoint& bounded, Bounds& bounds, unsigned coalesced = 1) {
  bounds.time("copy_launch_copy_ns");
  bounds.bytes("copy_engine_both_bytes_per_second", bounded.slot());
  limit_by_launches(bounded, bounds, coalesced);
}

/// Time of a batch on a bus with this ceiling, in ns.
inline std::optional<double> bus_ns(const BoundedPoint& bounded, const Limits& limits, const std::string& ceiling) {
  const auto rate = value_of(limits, ceiling);
  if (!rate) return std::nullopt;
  return bounded.slot() * static_cast<double>(bounded.point.batch) / *rate * 1e9;
}

/// BatchTime of one copy in, one launch and one copy out per `coalesced` batches.
inline std::optional<BatchTime> batch_time_of_copies(const BoundedPoint& bounded, const Limits& limits,
                                                     unsigned coalesced = 1) {
  const auto launches = value_of(limits, "launch_per_second"), copy = value_of(limits, "copy_queued_ns");
  const auto lone = value_of(limits, "copy_launch_copy_ns");
  const auto bus = bus_ns(bounded, limits, "copy_engine_both_bytes_per_second");
  if (!launches || !copy || !lone || !bus) return std::nullopt;
  const double calls = (1e9 / *launches + 2 * *copy) / coalesced;
  return BatchTime{std::max(calls, *bus), *lone + 2 * *bus};
}

}  // namespace feedrate
