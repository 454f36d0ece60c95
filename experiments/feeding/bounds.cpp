#include "experiments/feeding/bounds.hpp"

#include <algorithm>

#include "experiments/feeding/axes.hpp"
#include "experiments/feeding/stamped.hpp"
#include "variants/feeding/queue.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate {

namespace {

/// Producers write messages and the same number of collectors read results, each thread in its own slots. If the slots
/// exceed the caches, memory is the bound. If they may fit, the bound is the rate of a thread in its nearest cache.
void limit_by_host_memory(const BoundedPoint& bounded, std::size_t cache_bytes, Bounds& bounds) {
  const Point& point = bounded.point;
  const double threads = point.producers;
  const std::size_t slots = point.producers * (point.capacity != 0 ? point.capacity : point.window);
  const bool beyond = cache_bytes != 0 && slots * (bounded.in + bounded.out) > 2 * cache_bytes;
  const std::size_t most = point.touch == "stamp" ? sizeof(Header) + Stamped::kStampBytes : kMaxPayload + 1024;
  const auto in = static_cast<double>(std::min(bounded.in, most)),
             out = static_cast<double>(std::min(bounded.out, most));
  if (!beyond) {
    bounds.bytes("host_cache_write_bytes_per_second", in / threads);
    bounds.bytes("host_cache_read_bytes_per_second", out / threads);
    bounds.bytes("host_cache_both_bytes_per_second", (in + out) / threads);
    return;
  }
  bounds.bytes("host_thread_write_bytes_per_second", in / threads);
  bounds.bytes("host_thread_read_bytes_per_second", out / threads);
  bounds.bytes("host_memory_write_bytes_per_second", in);
  bounds.bytes("host_memory_read_bytes_per_second", out);
  bounds.bytes("host_memory_both_bytes_per_second", in + out);
}

}  // namespace

std::vector<std::pair<std::string, Expression>> bounds_of(const Point& point, const Limits& limits,
                                                          const Choices& choices, std::size_t cache_bytes, bool open) {
  const auto& queue = Queues::instance().get("--queue", point.queue);
  if (!queue.works) return {};
  Bounds bounds(limits);
  const BoundedPoint bounded{point, choices, sizeof(Header) + point.payload,
                             sizeof(Header) + make_workload(point)->result_bytes(point.payload)};
  if (queue.bounds) queue.bounds(bounded, bounds);
  if (queue.uses_transfer) {
    const auto& transfer = Transfers::instance().get("--transfer", point.transfer);
    if (point.device == "cpu") {
      limit_by_host(bounded, bounds);
    } else if (transfer.bounds) {
      transfer.bounds(bounded, bounds);
    }
  }
  limit_by_host_memory(bounded, cache_bytes, bounds);
  std::vector<std::pair<std::string, Expression>> all;
  if (bounds.time()) {
    all.emplace_back("latency_ns", *bounds.time());
    // Little's law: messages in flight divided by the shortest possible time of a message.
    bounds.rate(given("window", static_cast<double>(point.producers * point.window)) / *bounds.time());
  }
  if (open) return all;
  for (const Expression& rate : bounds.rates()) {
    all.emplace_back("messages_per_second", rate);
    if (point.payload != 0) {
      all.emplace_back("bytes_per_second", given("payload", static_cast<double>(point.payload)) * rate);
    }
  }
  return all;
}

}  // namespace feedrate
