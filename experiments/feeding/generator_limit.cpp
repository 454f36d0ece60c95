#include "experiments/feeding/generator_limit.hpp"

#include <algorithm>

#include "experiments/feeding/axes.hpp"
#include "experiments/feeding/sampling.hpp"
#include "experiments/harness/measure/session.hpp"

namespace feedrate {
namespace {

/// Above this share of the limit, a rate is bound by the load generator.
constexpr double kGeneratorBound = 0.9;
constexpr double kRunSeconds = 0.03, kWarmupSeconds = 0.01;

double rate_of(const PassResult& result) { return static_cast<double>(result.received) / result.seconds; }

}  // namespace

GeneratorLimit generator_limit_of(std::vector<double> rates) {
  std::ranges::sort(rates);
  const double median = (rates[(rates.size() - 1) / 2] + rates[rates.size() / 2]) / 2;
  return {median, rates.front(), rates.back()};
}

bool generator_bound(double rate, const GeneratorLimit& limit) { return rate > kGeneratorBound * limit.greatest; }

Point generator_point_of(Point point, Device& device) {
  point.queue = "null";
  point.arrivals = "closed";
  if (point.capacity == 0) point.capacity = point.window;
  return resolve(std::move(point), device).point;
}

GeneratorLimit measure_generator(const Point& generator_point, const Workload& workload, const Payloads& payloads,
                                 Device& device, const RunSettings& settings) {
  const QueueConfig config{.point = generator_point,
                           .device = device,
                           .workload = workload,
                           .answers = [&](std::uint64_t first_id, const Messages& results) {
                             payloads.answer(settings.seed, first_id, generator_point.payload, results);
                           }};
  const auto queue = Queues::instance().get("--queue", generator_point.queue).make(config);
  Load load(*queue, generator_point, payloads, device,
            {settings.seed, settings.pin_threads, settings.watchdog_seconds, interrupted});
  queue->start();
  load.run(
      {.messages = generator_point.producers * generator_point.capacity});  // touch every slot once to map its memory
  const double seen = rate_of(load.run({.seconds = kWarmupSeconds}));
  const Pass pass{.seconds = kRunSeconds, .sample_every = timing_sampling(seen, generator_point)};
  std::vector<double> rates;
  while (rates.size() < kGeneratorRuns) rates.push_back(rate_of(load.run(pass)));
  queue->stop(true);
  return generator_limit_of(std::move(rates));
}

}  // namespace feedrate
