#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "experiments/harness/measure/histogram.hpp"

namespace feedrate {
namespace {

/// Latencies typical of a queue: around `median` ns, most of them within a factor of two, a few far above.
std::vector<std::uint64_t> latencies(double median) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> spread(std::log(median), 0.7);
  std::vector<std::uint64_t> values(4096);
  for (auto& value : values) value = static_cast<std::uint64_t>(spread(random));
  return values;
}

void histogram_record(benchmark::State& state) {
  const auto values = latencies(static_cast<double>(state.range(0)));
  Histogram histogram;
  auto* const shared = &histogram;
  benchmark::DoNotOptimize(shared);  // forces each value's counts into memory before the next value
  std::size_t next = 0;
  for (auto _ : state) {
    histogram.record(values[next]);
    next = (next + 1) % values.size();
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(histogram_record)->ArgName("median_ns")->Arg(200)->Arg(5'000)->Arg(1'000'000);

/// The cost that a pass pays per flow, outside the timed part.
void histogram_merge(benchmark::State& state) {
  Histogram from, to;
  for (const auto value : latencies(5'000)) from.record(value);
  for (auto _ : state) {
    to.merge(from);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(histogram_merge);

}  // namespace
}  // namespace feedrate
