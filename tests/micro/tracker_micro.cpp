#include <benchmark/benchmark.h>

#include "common/error.hpp"
#include "experiments/feeding/tracker.hpp"

namespace feedrate {
namespace {

constexpr std::uint64_t kSpan = 1024;

/// Accepts results in order, or as two lanes return them: each block of 64 after its successor.
void tracker_accept(benchmark::State& state, std::uint64_t swapped) {
  Tracker tracker(kSpan);
  auto* const shared = &tracker;
  benchmark::DoNotOptimize(shared);  // keeps the tracker in memory, as in the load generator, not in registers
  std::uint64_t n = 0;
  for (auto _ : state) {
    if (tracker.accept(n ^ swapped) != Tracker::Verdict::fresh) throw Failure("a new result was not accepted as new");
    ++n;
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
/// The same in runs, as results arrive in batches.
void tracker_accept_run(benchmark::State& state, std::uint64_t swapped) {
  constexpr std::uint64_t kRun = 64;
  Tracker tracker(kSpan);
  auto* const shared = &tracker;
  benchmark::DoNotOptimize(shared);
  std::uint64_t n = 0;
  for (auto _ : state) {
    if (!tracker.accept_run(n ^ swapped, kRun)) throw Failure("a new result was not accepted as new");
    n += kRun;
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRun));
}
BENCHMARK_CAPTURE(tracker_accept, in_order, 0);
BENCHMARK_CAPTURE(tracker_accept, blocks_swapped, 64);
BENCHMARK_CAPTURE(tracker_accept_run, in_order, 0);
BENCHMARK_CAPTURE(tracker_accept_run, blocks_swapped, 64);

}  // namespace
}  // namespace feedrate
