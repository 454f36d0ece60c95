#include <benchmark/benchmark.h>

#include <vector>

#include "experiments/feeding/flow.hpp"
#include "tests/support/given_queue.hpp"

/// Time that the load generator takes to collect a 64-byte result. The producer published `run` messages at a time to
/// one lane after another, so that results arrive in runs of consecutive ids.
namespace feedrate {
namespace {

constexpr std::size_t kPayload = 64, kResults = 1 << 18, kLanes = 4, kBatch = 256;

/// The results of a pass in the order in which they are found: one batch from each lane in turn.
std::vector<std::byte> results_in_runs(const Workload& workload, std::size_t run) {
  constexpr std::uint32_t stride = stride_of(kPayload);
  std::vector<std::byte> messages(kResults * stride), results(messages.size());
  for (std::size_t at = 0; at < kResults; at += run) {
    const std::size_t lane = at / kBatch % kLanes, place = at / (kBatch * kLanes) * kBatch + at % kBatch;
    workload.fill(1, place * kLanes + lane * run, kPayload, {messages.data() + at * stride, stride, run});
  }
  workload.run_on_cpu({messages.data(), results.data(), stride, stride, kResults});
  return results;
}

void collect_results(benchmark::State& state) {
  const auto run = static_cast<std::size_t>(state.range(0));
  const auto workload = Workloads::instance().get("--workload", "echo").make({});
  Point point;
  point.payload = kPayload, point.batch = kBatch, point.window = 4096;
  const std::vector<std::byte> results = results_in_runs(*workload, run);
  test::GivenQueue queue({results.data(), stride_of(kPayload), kResults}, kBatch);
  Flow flow(0, point, queue);
  const Work work{point, *workload, 1, true, nullptr};
  const Pass pass{.sample_every = 128};
  const std::atomic<bool> abort{false};
  for (auto _ : state) {
    state.PauseTiming();
    flow.tracker = Tracker(flow.stamps.size());
    flow.counts = {};
    flow.sent = kResults;
    flow.sent_seen = 0;
    flow.all_sent = true;
    flow.collector = queue.collector(0);
    state.ResumeTiming();
    collect(flow, work, pass, abort);
  }
  if (flow.counts.received != kResults || flow.counts.duplicated + flow.counts.corrupted != 0)
    state.SkipWithError("results are missing, duplicated or wrong");
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kResults));
}
BENCHMARK(collect_results)->ArgName("run")->RangeMultiplier(2)->Range(4, 256);

}  // namespace
}  // namespace feedrate
