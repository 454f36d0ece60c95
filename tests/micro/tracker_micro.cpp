#include <benchmark/benchmark.h>

#include "common/error.hpp"
#include "experiments/feeding/tracker.hpp"

namespace feedrate {
namespace {

constexpr std::uint64_t kSpan = 1024;

/// Results in order, and as two lanes return them: every block of 64 behind its successor.
void tracker_accept(benchmark::State& state, std::uint64_t swapped) {
  Tracker tracker(kSpan);
  auto* const shared = &tracker;
  benchmark::DoNotOptimize(shared);  // so that it lives in memory, as the driver's does, not in registers
  std::uint64_t n = 0;
  for (auto _ : state) {
    if (tracker.accept(n ^ swapped) != Tracker::Verdict::fresh) throw Failure("not taken for fresh");
    ++n;
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
/// The same by runs, as a batch of results comes.
void tracker_accept_run(benchmark::State& state, std::uint64_t swapped) {
  constexpr std::uint64_t kRun = 64;
  Tracker tracker(kSpan);
  auto* const shared = &tracker;
  benchmark::DoNotOptimize(shared);
  std::uint64_t n = 0;
  for (auto _ : state) {
    if (!tracker.accept_run(n ^ swapped, kRun)) throw Failure("not taken for fresh");
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
