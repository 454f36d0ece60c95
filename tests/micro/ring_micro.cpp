#include <benchmark/benchmark.h>

#include <vector>

#include "common/error.hpp"
#include "variants/queues/ring_memory.hpp"

/// What the ring protocol itself costs the host: messages are neither written nor worked on, and one thread plays all
/// parts, so no cache line travels between cores. A queue pays that on top.
namespace feedrate {
namespace {

constexpr std::size_t kStride = stride_of(64);
constexpr std::uint64_t kCapacity = 1024;

/// Takes what waits, as a worker thread does, and calls it done. Of a flagged ring each message is taken out of its
/// slot and put into the result's: that copy is part of the protocol.
void serve(RingServer& server, const RingView& ring, std::vector<std::byte>& message) {
  const std::uint64_t n = ring.contiguous(server.taken(), server.waiting());
  for (std::uint64_t at = server.taken(); ring.flagged != 0 && at < server.taken() + n; ++at) {
    if (!load_flagged(ring.in_slot(at), at, message.data(), kStride)) throw Failure("published, but not there");
    store_flagged(ring.out_slot(at), at, message.data(), kStride);
  }
  server.take(n);
  if (ring.flagged == 0) server.complete(n);
}

/// Name/batch: `n` messages of 64 bytes all the way round.
void round_trip(benchmark::State& state, bool flagged) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const auto device = open_cpu_device();
  const RingMemory memory(*device, HostMemory::pageable, kStride, kStride, kCapacity, flagged);
  const RingView ring = memory.view();
  RingIn producer(ring, batch);
  RingServer server(ring);
  RingOut collector(ring, batch);
  std::vector<std::byte> message(kStride);
  for (auto _ : state) {
    const Messages room = producer.reserve(batch);
    benchmark::DoNotOptimize(room.base);
    producer.publish(room.count);
    serve(server, ring, message);
    const ConstMessages results = collector.poll(batch);
    benchmark::DoNotOptimize(results.base);
    if (results.count != batch) throw Failure("results are missing");
    collector.release(results.count);
  }
  const auto messages = state.iterations() * static_cast<std::int64_t>(batch);
  state.SetItemsProcessed(messages);
  state.counters["a_message"] = benchmark::Counter(
      static_cast<double>(messages), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);  // seconds: "12.3n"
}

BENCHMARK_CAPTURE(round_trip, plain, false)->ArgName("batch")->Arg(1)->Arg(8)->Arg(64)->Arg(256);
BENCHMARK_CAPTURE(round_trip, flagged, true)->ArgName("batch")->Arg(1)->Arg(8)->Arg(64)->Arg(256);

/// How long a side looks when nothing is there: what polling costs each time in vain.
void look_in_vain(benchmark::State& state, bool flagged) {
  const auto device = open_cpu_device();
  const RingMemory memory(*device, HostMemory::pageable, kStride, kStride, kCapacity, flagged);
  RingOut collector(memory.view(), 64);
  for (auto _ : state) {
    const ConstMessages results = collector.poll(64);
    benchmark::DoNotOptimize(results.count);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(look_in_vain, plain, false);
BENCHMARK_CAPTURE(look_in_vain, flagged, true);

}  // namespace
}  // namespace feedrate
