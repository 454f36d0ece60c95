#include "experiments/feeding/bounds.hpp"

#include "experiments/feeding/axes.hpp"
#include "variants/queue.hpp"
#include "variants/transfer.hpp"

namespace feedrate {

std::map<std::string, BoundRatio> bounds_of(const Point& point, const Floors& floors, const Choices& choices,
                                            double messages_per_second, double p50_ns) {
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
  std::map<std::string, BoundRatio> bounds;
  if (const auto time = limits.least_time()) {
    bounds["latency_ns"] = {time->floor, time->value, p50_ns / time->value};
    // Little's law: what is in flight, over the shortest time that a message can take.
    limits.rate("window/" + time->floor, static_cast<double>(point.producers * point.window) / time->value * 1e9);
  }
  if (const auto rate = limits.least_rate()) {
    bounds["messages_per_second"] = {rate->floor, rate->value, messages_per_second / rate->value};
  }
  return bounds;
}

}  // namespace feedrate
