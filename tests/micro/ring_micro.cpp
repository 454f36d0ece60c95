#include <benchmark/benchmark.h>

#include <cstring>
#include <optional>
#include <vector>

#include "common/error.hpp"
#include "libraries/ring/lane_memory.hpp"

/// Host time that the ring takes per 64-byte message. Only headers are written and read, not payloads, and one thread
/// plays all parts, so no cache line travels between cores or over a bus; a queue has that additional cost. Each part
/// is timed alone, over all slots at once, with the clock stopped for the other parts, so that the cost of stopping the
/// clock is negligible.
namespace feedrate {
namespace {

constexpr std::size_t kPayload = 64;
constexpr std::size_t kCapacity = 4096;

struct BenchLane {
  BenchLane(std::size_t batch, Notify notify, unsigned mirrors) : batch(batch), device(open_cpu_device()) {
    RingConfig config;
    config.message_bytes = config.result_bytes = kPayload;
    config.capacity = kCapacity;
    config.batch = batch;
    config.notify = notify;
    config.mirrors = mirrors;
    config.pollers = mirrors;
    memory.emplace(*device, polled_pieces(config));
    lane = make_lane(*device, *memory, config);
    view = lane->view();
    served.resize((view.in_units + 1) * sizeof(Unit));
  }

  /// Fills all slots.
  void publish() {
    for (std::size_t sent = 0; sent < kCapacity;) {
      const Messages room = lane->reserve(batch);
      for (std::size_t i = 0; i < room.count; ++i) room.header(i) = {next_id++, kPayload, 0};
      benchmark::DoNotOptimize(room.base);
      lane->publish(room.count);
      if (room.empty()) throw Failure("the lane is full");
      sent += room.count;
    }
  }
  /// Returns each message as its own result.
  void serve() {
    for (std::size_t i = 0; i < kCapacity; ++i, ++taken) {
      if (view.notify == Notify::counter) {
        std::memcpy(view.ring.out_slot(taken), view.ring.in_slot(taken), sizeof(Header));
        continue;
      }
      if (load_flagged(view.unit_in(taken, 0), taken, served.data(), view.in_units) != Flagged::complete) {
        throw Failure("a published message is missing");
      }
      store_flagged(view.unit_out(taken), taken, served.data(), units_of(sizeof(Header) + kPayload));
    }
    if (view.notify == Notify::flags) return;
    for (std::uint64_t end = taken - kCapacity; end < taken; end += batch) {
      SystemMemory::store_release(view.ends[view.ring.slot(end)], end + batch);
    }
  }
  /// Takes all results.
  void poll() {
    for (std::size_t received = 0; received < kCapacity;) {
      const ConstMessages results = lane->poll(batch);
      for (std::size_t i = 0; i < results.count; ++i) benchmark::DoNotOptimize(results.header(i).id);
      lane->release(results.count);
      if (results.empty()) throw Failure("results are missing");
      received += results.count;
    }
  }

  std::size_t batch;
  std::unique_ptr<Device> device;
  std::optional<PolledMemory> memory;
  std::unique_ptr<HostLane> lane;
  LaneView view;
  std::vector<std::byte> served;  // holds one flagged message
  std::uint64_t next_id = 0, taken = 0;
};

enum class Part { publish, poll, both };

void host_cost(benchmark::State& state, Part part, Notify notify) {
  BenchLane lane(static_cast<std::size_t>(state.range(0)), notify,
                 notify == Notify::flags ? static_cast<unsigned>(state.range(1)) : 1);
  for (auto _ : state) {
    if (part == Part::poll) state.PauseTiming();
    lane.publish();
    if (part != Part::poll) state.PauseTiming();
    lane.serve();
    if (part != Part::publish) state.ResumeTiming();
    lane.poll();
    if (part == Part::publish) state.ResumeTiming();
  }
  const auto messages = state.iterations() * static_cast<std::int64_t>(kCapacity);
  state.SetItemsProcessed(messages);
  state.counters["a_message"] = benchmark::Counter(
      static_cast<double>(messages), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);  // seconds: "12.3n"
}

void counter_batches(benchmark::internal::Benchmark* b) {
  b->ArgName("batch");
  for (const int batch : {1, 8, 64, 256}) b->Arg(batch);
}
void flags_batches(benchmark::internal::Benchmark* b) {
  b->ArgNames({"batch", "mirrors"});
  for (const int mirrors : {1, 8}) {
    for (const int batch : {1, 64}) b->Args({batch, mirrors});
  }
}
BENCHMARK_CAPTURE(host_cost, counter_publish, Part::publish, Notify::counter)->Apply(counter_batches);
BENCHMARK_CAPTURE(host_cost, counter_poll, Part::poll, Notify::counter)->Apply(counter_batches);
BENCHMARK_CAPTURE(host_cost, counter_both, Part::both, Notify::counter)->Apply(counter_batches);
BENCHMARK_CAPTURE(host_cost, flags_publish, Part::publish, Notify::flags)->Apply(flags_batches);
BENCHMARK_CAPTURE(host_cost, flags_poll, Part::poll, Notify::flags)->Apply(flags_batches);
BENCHMARK_CAPTURE(host_cost, flags_both, Part::both, Notify::flags)->Apply(flags_batches);

/// The cost of a poll that finds nothing.
void poll_empty(benchmark::State& state, Notify notify) {
  const BenchLane lane(64, notify, 1);
  for (auto _ : state) {
    const ConstMessages results = lane.lane->poll(64);
    benchmark::DoNotOptimize(results.count);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(poll_empty, counter, Notify::counter);
BENCHMARK_CAPTURE(poll_empty, flags, Notify::flags);

}  // namespace
}  // namespace feedrate
