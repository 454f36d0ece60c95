#include "experiments/feeding/sampling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "experiments/feeding/flow.hpp"
#include "variants/feeding/queue.hpp"

namespace feedrate {
namespace {

// Cost of timing a message in ns: a histogram entry and a share of a cache line that travels between two cores; two
// clock reads per batch.
constexpr double kStampNs = 40, kClockNs = 50;
// Cost of a message's stage times in ns: cache lines that travel among three or more cores. A transfer also records
// more events, and each event can wake a thread.
constexpr double kStagesNs = 400, kEventsNs = 10'000;
constexpr double kStampBudget = 0.02;  // share of a producer's time

unsigned sampling(double messages_per_second, const Point& point, double cost_ns) {
  const double share = messages_per_second / point.producers * cost_ns * 1e-9;
  return std::bit_ceil(static_cast<unsigned>(std::ceil(std::max(1.0, share / kStampBudget))));
}

}  // namespace

unsigned timing_sampling(double messages_per_second, const Point& point) {
  const double clocks = kClockNs / static_cast<double>(std::max<std::size_t>(1, point.batch / 2));
  return sampling(messages_per_second, point, kStampNs + clocks);
}

unsigned stages_sampling(double messages_per_second, double seconds, const Point& point) {
  const bool events = Queues::instance().get("--queue", point.queue).uses_transfer;
  const double samples = messages_per_second / point.producers * seconds;
  const double fit = std::max(
      1.0,
      std::ceil(2 * samples /
                static_cast<double>(max_stage_samples(point.producers))));  // factor 2: the rate may still increase
  return std::max(sampling(messages_per_second, point, events ? kEventsNs : kStagesNs),
                  std::bit_ceil(static_cast<unsigned>(fit)));
}

std::uint64_t finest_sampling(double due_per_second, const Point& point) {
  constexpr std::size_t kFewMessages = 4;
  constexpr double kMarkedPerSecond = 20'000, kCoarsest = 1024, kBusBytesPerSecond = 40e9;
  if (!Queues::instance().get("--queue", point.queue).resident || point.device == "cpu") return 1;
  if (due_per_second == 0 && point.window <= kFewMessages) return 16;
  const double most = kBusBytesPerSecond / static_cast<double>(stride_of(point.payload));
  const double rate = due_per_second != 0 ? due_per_second : most;
  return std::bit_ceil(static_cast<std::uint64_t>(std::clamp(rate / kMarkedPerSecond, 1.0, kCoarsest)));
}

}  // namespace feedrate
