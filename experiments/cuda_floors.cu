
#include <array>

#include "common/device/cuda_check.hpp"
#include "common/ring/flags.hpp"
#include "experiments/floors.hpp"

/// What the GPU and its bus allow, by bare CUDA calls on pinned memory: DESIGN's rule "floors first".
namespace feedrate {
namespace {

constexpr std::size_t kLarge = std::size_t{64} << 20;  // bytes of a bandwidth probe: several times the L2
constexpr unsigned kBlocks = 64, kThreads = 512;       // of the SM probes: enough to fill the bus, measured
constexpr unsigned kTimings = 1000, kTrips = 5000;
constexpr double kSeconds = 0.1;

__global__ void empty_kernel() {}

__global__ void read_kernel(const uint4* host, std::size_t n, uint4* sink) {
  uint4 sum{};
#pragma unroll 8
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) {
    const uint4 v = host[i];
    sum.x ^= v.x, sum.y ^= v.y, sum.z ^= v.z, sum.w ^= v.w;
  }
  if ((sum.x | sum.y | sum.z | sum.w) == 0xFFFF'FFFFu) *sink = sum;  // never, but the loads must stay
}

__global__ void write_kernel(uint4* host, std::size_t n, unsigned value) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) {
    host[i] = uint4{value, value, value, value};
  }
}

__global__ void echo_kernel(const uint4* in, uint4* out, std::size_t n) {
#pragma unroll 4
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) {
    uint4 v = in[i];
    ++v.x;
    out[i] = v;
  }
}

/// Answers word after word; ends by itself when the host falls silent for two seconds.
__global__ void answer_kernel(std::uint64_t* question, std::uint64_t* answer, std::uint64_t trips) {
  std::uint64_t since = 0, now = 0;
  for (std::uint64_t i = 1; i <= trips; ++i) {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(since));
    while (SystemMemory::load_relaxed(*question) < i) {
      asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
      if (now - since > 2'000'000'000) return;
    }
    SystemMemory::store_relaxed(*answer, i);
  }
}

constexpr unsigned kPollers = 2;     // warps; more wait for each other at the line that they read
constexpr unsigned kLoneBytes = 64;  // a message without header
constexpr unsigned kLoneSlots = 64;  // lines, so that each message is written to one that was read long ago

/// Hands lone messages back, every word plus one: what a queue of lone messages can't be faster than, give or take
/// where its pollers look. Two warps look by turns; the slots are flagged (common/ring/flags.hpp).
__global__ void lone_kernel(const Unit* in, Unit* out, std::uint64_t trips) {
  __shared__ std::uint64_t next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  constexpr unsigned kUnits = units_of(kLoneBytes), kStep = kLine / sizeof(Unit);
  const unsigned lane = threadIdx.x % 32;
  std::uint64_t since = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(since));
  now = since;
  while (true) {
    // From one lane: others may look at another time, and an earlier message is whole, too.
    const std::uint64_t number = __shfl_sync(0xFFFF'FFFFu, SystemMemory::lane_load(next), 0);
    if (number >= trips) return;
    const std::size_t slot = number % kLoneSlots * kStep;
    Unit unit{};
    if (lane < kUnits) unit = SystemMemory::load_unit(in[slot + lane]);
    if (!__all_sync(0xFFFF'FFFFu, lane >= kUnits || unit.flag == flag_of(number))) {
      asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
      if (__any_sync(0xFFFF'FFFFu, now - since > 2'000'000'000)) return;
      continue;
    }
    bool won = lane == 0 && SystemMemory::lane_exchange(next, number, number + 1);
    won = __shfl_sync(0xFFFF'FFFFu, won, 0);
    if (!won) continue;
    for (auto& word : unit.data) ++word;
    if (lane < kUnits) SystemMemory::store_unit(out[slot + lane], unit);
    since = now;
  }
}

class OneStream {
 public:
  OneStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~OneStream() { cudaStreamDestroy(stream_); }
  OneStream(const OneStream&) = delete;
  OneStream& operator=(const OneStream&) = delete;
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

void launched() { check(cudaGetLastError(), "kernel launch"); }
void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
}

double graph_launch_sync_ns() {
  const OneStream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  empty_kernel<<<1, 1, 0, stream>>>();
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  const double median = median_ns(kTimings, [&] {
    check(cudaGraphLaunch(ready, stream), "cudaGraphLaunch");
    stream.wait();
  });
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  return median;
}

double lone_message_ns(Device& device) {
  constexpr std::size_t kStep = kLine / sizeof(Unit);
  const Buffer memory = device.allocate_host(2 * kLoneSlots * kLine, HostMemory::pinned);
  auto* in = reinterpret_cast<Unit*>(memory.data());
  auto* out = in + kLoneSlots * kStep;
  const OneStream stream;
  constexpr std::uint64_t kAll = kTrips + kTrips / 10;  // median_ns warms up with a tenth
  lone_kernel<<<1, 32 * kPollers, 0, stream>>>(in, out, kAll);
  launched();
  alignas(16) std::array<std::uint32_t, kLoneBytes / 4 + 8> message{};
  std::uint64_t trip = 0, wrong = 0;
  const double median = median_ns(kTrips, [&] {
    const std::size_t slot = trip % kLoneSlots * kStep;
    for (auto& word : message) word = static_cast<std::uint32_t>(trip);
    store_flagged(in + slot, trip, reinterpret_cast<const std::byte*>(message.data()), units_of(kLoneBytes));
    for (std::uint32_t i = 0; i < units_of(kLoneBytes); ++i) {
      Unit unit = SystemMemory::load_unit(out[slot + i]);
      for (std::uint64_t looks = 1; unit.flag != flag_of(trip); ++looks) {
        if (looks % 1'000'000 == 0 && cudaStreamQuery(stream) != cudaErrorNotReady)
          throw Failure("the lone kernel ended");
        unit = SystemMemory::load_unit(out[slot + i]);
      }
      wrong += unit.data[0] != static_cast<std::uint32_t>(trip) + 1 ? 1 : 0;
    }
    ++trip;
  });
  stream.wait();
  if (wrong != 0) throw Failure("the lone kernel answered wrongly");
  return median;
}

double word_round_trip_ns(Device& device) {
  const Buffer memory = device.allocate_host(256, HostMemory::pinned);
  auto* question = reinterpret_cast<std::uint64_t*>(memory.data());
  auto* answer = reinterpret_cast<std::uint64_t*>(memory.data() + 128);
  const OneStream stream;
  constexpr std::uint64_t kAll = kTrips + kTrips / 10;  // median_ns warms up with a tenth
  answer_kernel<<<1, 1, 0, stream>>>(question, answer, kAll);
  launched();
  std::uint64_t trip = 0;
  const double median = median_ns(kTrips, [&] {
    SystemMemory::store_relaxed(*question, ++trip);
    while (SystemMemory::load_relaxed(*answer) < trip && cudaStreamQuery(stream) == cudaErrorNotReady) {
      for (unsigned spin = 0; spin < 20'000 && SystemMemory::load_relaxed(*answer) < trip; ++spin) {
      }
    }
  });
  stream.wait();
  if (SystemMemory::load_relaxed(*answer) != kAll) throw Failure("the answering kernel ended early");
  return median;
}

}  // namespace

void add_cuda_floors(FloorList& floors, Device& device) {
  const Buffer in = device.allocate_host(kLarge, HostMemory::pinned),
               out = device.allocate_host(kLarge, HostMemory::pinned);
  const Buffer near_in = device.allocate_device(kLarge), near_out = device.allocate_device(kLarge);
  const OneStream a, b;
  const auto* in16 = reinterpret_cast<const uint4*>(in.data());
  auto* out16 = reinterpret_cast<uint4*>(out.data());
  constexpr std::size_t kPieces = kLarge / sizeof(uint4);
  constexpr std::size_t kSmall = 64;
  const auto bandwidth = [&](const std::function<void()>& body) {
    return static_cast<double>(kLarge) * per_second(kSeconds, body);
  };

  floors.add("launch_sync_ns", "ns", "empty kernel: launch and synchronize, median", [&] {
    return median_ns(kTimings, [&] {
      empty_kernel<<<1, 1, 0, a>>>();
      launched();
      a.wait();
    });
  });
  floors.add("launch_per_second", "1/s", "empty kernels queued in one stream", [&] {
    const double rate = per_second(kSeconds, [&] {
      for (int i = 0; i < 100; ++i) empty_kernel<<<1, 1, 0, a>>>();
      launched();
      a.wait();
    });
    return 100 * rate;
  });
  floors.add("graph_launch_sync_ns", "ns", "graph of one empty kernel: launch and synchronize, median",
             graph_launch_sync_ns);
  floors.add("mapped_launch_sync_ns", "ns", "kernel that reads and writes 64 B of pinned memory, synchronize, median",
             [&] {
               return median_ns(kTimings, [&] {
                 echo_kernel<<<1, 32, 0, a>>>(in16, out16, kSmall / sizeof(uint4));
                 launched();
                 a.wait();
               });
             });
  floors.add("copy_launch_copy_ns", "ns", "64 B: copy in, kernel, copy out, synchronize, median", [&] {
    return median_ns(kTimings, [&] {
      copy(near_in.data(), in.data(), kSmall, cudaMemcpyHostToDevice, a);
      echo_kernel<<<1, 32, 0, a>>>(reinterpret_cast<const uint4*>(near_in.data()),
                                   reinterpret_cast<uint4*>(near_out.data()), kSmall / sizeof(uint4));
      launched();
      copy(out.data(), near_out.data(), kSmall, cudaMemcpyDeviceToHost, a);
      a.wait();
    });
  });
  floors.add("word_round_trip_ns", "ns", "one word to a polling kernel and back, median",
             [&] { return word_round_trip_ns(device); });
  floors.add("lone_message_ns", "ns", "64 B to a polling kernel (two warps) and back, no header, median",
             [&] { return lone_message_ns(device); });
  floors.add("copy_queued_ns", "ns", "64 B copies to the device, queued in one stream, each", [&] {
    constexpr int kQueued = 256;
    return 1e9 / kQueued / per_second(kSeconds, [&] {
             for (int i = 0; i < kQueued; ++i) copy(near_in.data(), in.data(), kSmall, cudaMemcpyHostToDevice, a);
             a.wait();
           });
  });
  floors.add("copy_engine_h2d_bytes_per_second", "bytes/s", "64 MiB copies from pinned memory", [&] {
    return bandwidth([&] {
      copy(near_in.data(), in.data(), kLarge, cudaMemcpyHostToDevice, a);
      a.wait();
    });
  });
  floors.add("copy_engine_d2h_bytes_per_second", "bytes/s", "64 MiB copies to pinned memory", [&] {
    return bandwidth([&] {
      copy(out.data(), near_out.data(), kLarge, cudaMemcpyDeviceToHost, a);
      a.wait();
    });
  });
  floors.add("copy_engine_both_bytes_per_second", "bytes/s", "both at once, each way", [&] {
    return bandwidth([&] {
      copy(near_in.data(), in.data(), kLarge, cudaMemcpyHostToDevice, a);
      copy(out.data(), near_out.data(), kLarge, cudaMemcpyDeviceToHost, b);
      a.wait();
      b.wait();
    });
  });
  floors.add("sm_read_host_bytes_per_second", "bytes/s", "a kernel reads pinned memory", [&] {
    return bandwidth([&] {
      read_kernel<<<kBlocks, kThreads, 0, a>>>(in16, kPieces, reinterpret_cast<uint4*>(near_out.data()));
      launched();
      a.wait();
    });
  });
  floors.add("sm_write_host_bytes_per_second", "bytes/s", "a kernel writes pinned memory", [&] {
    return bandwidth([&] {
      write_kernel<<<kBlocks, kThreads, 0, a>>>(out16, kPieces, 7);
      launched();
      a.wait();
    });
  });
  floors.add("sm_echo_bytes_per_second", "bytes/s", "a kernel reads pinned memory and writes it back, each way", [&] {
    return bandwidth([&] {
      echo_kernel<<<kBlocks, kThreads, 0, a>>>(in16, out16, kPieces);
      launched();
      a.wait();
    });
  });
}

}  // namespace feedrate
