#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "common/error.hpp"
#include "kernels/workload.hpp"

/// Filling and checking messages. The load generator's threads do both for every message, so no queue can be faster.
namespace feedrate {
namespace {

constexpr std::uint64_t kSeed = 1;

/// A batch of `echo` messages and their correct results, small enough to stay in the caches as in a running queue.
struct EchoBatch {
  explicit EchoBatch(std::size_t payload)
      : payload(payload),
        count(std::clamp<std::size_t>((std::size_t{256} << 10) / payload, 1, 256)),
        workload(Workloads::instance().get("--workload", "echo").make({})),
        in(count * stride_of(payload)),
        out(in.size()),
        ids(count) {
    fill();
    const auto stride = static_cast<std::uint32_t>(stride_of(payload));
    workload->run_on_cpu({in.data(), out.data(), stride, stride, static_cast<std::uint32_t>(count)});
  }
  void fill() { workload->fill(kSeed, message_id(0, 0), payload, {in.data(), stride_of(payload), count}); }
  bool all_right() {
    return workload->check(kSeed, payload, {out.data(), stride_of(payload), count}, ids.data()).right;
  }
  void report(benchmark::State& state) const {
    const auto messages = state.iterations() * static_cast<std::int64_t>(count);
    state.SetItemsProcessed(messages);
    state.counters["per_message"] =
        benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    state.SetBytesProcessed(messages * static_cast<std::int64_t>(payload));
  }

  std::size_t payload, count;
  std::unique_ptr<Workload> workload;
  std::vector<std::byte> in, out;
  std::vector<std::uint64_t> ids;
};

void echo_fill(benchmark::State& state) {
  EchoBatch batch(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    batch.fill();
    benchmark::ClobberMemory();
  }
  batch.report(state);
}
BENCHMARK(echo_fill)->ArgName("payload")->Arg(16)->Arg(64)->Arg(100)->Arg(4 << 10)->Arg(1 << 20);

void echo_verify(benchmark::State& state) {
  EchoBatch batch(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    if (!batch.all_right()) throw Failure("a correct result was rejected");
  }
  batch.report(state);
}
BENCHMARK(echo_verify)->ArgName("payload")->Arg(16)->Arg(64)->Arg(100)->Arg(4 << 10)->Arg(1 << 20);

}  // namespace
}  // namespace feedrate
