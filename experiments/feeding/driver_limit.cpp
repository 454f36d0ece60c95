#include "experiments/feeding/driver_limit.hpp"

#include <algorithm>

#include "experiments/feeding/axes.hpp"
#include "experiments/feeding/sampling.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate {
namespace {

/// Above this share of the limit a rate is bound by the load generator.
constexpr double kDriverBound = 0.9;
constexpr double kRunSeconds = 0.05, kWarmupSeconds = 0.02;

double rate_of(const PassResult& result) { return static_cast<double>(result.received) / result.seconds; }

}  // namespace

DriverLimit driver_limit_of(std::vector<double> rates) {
  std::ranges::sort(rates);
  const double median = (rates[(rates.size() - 1) / 2] + rates[rates.size() / 2]) / 2;
  return {median, rates.front(), rates.back()};
}

bool driver_bound(double rate, const DriverLimit& limit) { return rate > kDriverBound * limit.median; }

Point yardstick_of(Point point, Device& device) {
  point.queue = "null";
  point.arrivals = "closed";
  if (point.capacity == 0) point.capacity = point.window;
  return resolve(std::move(point), device).point;
}

DriverLimit measure_driver(const Point& yardstick, const Workload& workload, const Payloads& payloads, Device& device,
                           const RunSettings& settings) {
  const QueueConfig config{.point = yardstick,
                           .device = device,
                           .workload = workload,
                           .answers = [&](std::uint64_t first_id, const Messages& results) {
                             payloads.answer(settings.seed, first_id, yardstick.payload, results);
                           }};
  const auto queue = Queues::instance().get("--queue", yardstick.queue).make(config);
  Load load(*queue, yardstick, payloads, device,
            {settings.seed, settings.pin_threads, settings.watchdog_seconds, interrupted});
  queue->start();
  load.run({.messages = yardstick.producers * yardstick.capacity});  // touch every slot once to map its memory
  const double seen = rate_of(load.run({.seconds = kWarmupSeconds}));
  const Pass pass{.seconds = kRunSeconds, .sample_every = timing_sampling(seen, yardstick)};
  std::vector<double> rates;
  while (rates.size() < kDriverRuns) rates.push_back(rate_of(load.run(pass)));
  queue->stop(true);
  return driver_limit_of(std::move(rates));
}

}  // namespace feedrate
