#include "experiments/feeding/bounds.hpp"

#include <unistd.h>

#include <algorithm>

#include "experiments/feeding/axes.hpp"
#include "experiments/feeding/stamped.hpp"
#include "variants/feeding/queue.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate {

namespace {

/// Of all cores together; 0 where the machine does not tell.
std::size_t last_level_cache() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

/// Producers write messages, as many collectors read results, each in slots of its own, a thread each. What lies
/// beyond the caches for sure is bound by the memory; of what may lie in them, no more is said than what a thread does
/// in its nearest cache.
void limit_by_host_memory(const Bounded& bounded, std::size_t cache_bytes, Limits& limits) {
  const Point& point = bounded.point;
  const double threads = point.producers;
  const std::size_t slots = point.producers * (point.capacity != 0 ? point.capacity : point.window);
  const bool beyond = cache_bytes != 0 && slots * (bounded.in + bounded.out) > 2 * cache_bytes;
  const std::size_t most = point.touch == "stamp" ? sizeof(Header) + Stamped::kStampBytes : kMostPayload + 1024;
  const auto in = static_cast<double>(std::min(bounded.in, most)),
             out = static_cast<double>(std::min(bounded.out, most));
  if (!beyond) {
    limits.bytes("host_cache_write_bytes_per_second", in / threads);
    limits.bytes("host_cache_read_bytes_per_second", out / threads);
    limits.bytes("host_cache_both_bytes_per_second", (in + out) / threads);
    return;
  }
  limits.bytes("host_thread_write_bytes_per_second", in / threads);
  limits.bytes("host_thread_read_bytes_per_second", out / threads);
  limits.bytes("host_memory_write_bytes_per_second", in);
  limits.bytes("host_memory_read_bytes_per_second", out);
  limits.bytes("host_memory_both_bytes_per_second", in + out);
}

}  // namespace

std::map<std::string, BoundRatio> bounds_of(const Point& point, const Floors& floors, const Choices& choices,
                                            double messages_per_second, double p50_ns) {
  return bounds_of(point, floors, choices, messages_per_second, p50_ns, last_level_cache());
}

std::map<std::string, BoundRatio> bounds_of(const Point& point, const Floors& floors, const Choices& choices,
                                            double messages_per_second, double p50_ns, std::size_t cache_bytes) {
  const auto& queue = Queues::instance().get("--queue", point.queue);
  if (!queue.works) return {};
  Limits limits(floors);
  const Bounded bounded{point, choices, sizeof(Header) + point.payload,
                        sizeof(Header) + make_workload(point)->result_bytes(point.payload)};
  if (queue.limits) queue.limits(bounded, limits);
  if (queue.uses_transfer) {
    const auto& transfer = Transfers::instance().get("--transfer", point.transfer);
    if (point.device == "cpu") {
      limit_by_host(bounded, limits);
    } else if (transfer.limits) {
      transfer.limits(bounded, limits);
    }
  }
  limit_by_host_memory(bounded, cache_bytes, limits);
  std::map<std::string, BoundRatio> bounds;
  if (const auto time = limits.least_time()) {
    bounds["latency_ns"] = {time->floor, time->value, p50_ns / time->value};
    // Little's law: what is in flight, over the shortest time that a message can take.
    limits.rate("window/" + time->floor, static_cast<double>(point.producers * point.window) / time->value * 1e9);
  }
  if (const auto rate = limits.least_rate()) {
    const double ratio = messages_per_second / rate->value;
    bounds["messages_per_second"] = {rate->floor, rate->value, ratio};
    if (point.payload != 0) {
      bounds["bytes_per_second"] = {rate->floor, rate->value * static_cast<double>(point.payload), ratio};
    }
  }
  return bounds;
}

}  // namespace feedrate
