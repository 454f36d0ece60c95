#include <cuda/ptx>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "common/device/cuda_check.hpp"
#include "common/ring/flags.hpp"
#include "experiments/floors.hpp"
#include "kernels/group.hpp"

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

constexpr unsigned kBulkStages = 4, kBulkBytes = 16 << 10;

/// The same by bulk asynchronous copies, to shared memory and back: one thread of a block keeps `kBulkStages` of them
/// under way, of `kBulkBytes` each. Needs sm_90.
__global__ void bulk_echo_kernel(const std::byte* in, std::byte* out, std::size_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  namespace ptx = cuda::ptx;
  extern __shared__ __align__(128) std::byte stages[];
  __shared__ std::uint64_t arrived[kBulkStages];
  const std::size_t pieces = bytes / kBulkBytes;
  const auto mine = static_cast<unsigned>(pieces > blockIdx.x ? (pieces - blockIdx.x - 1) / gridDim.x + 1 : 0);
  const auto offset = [&](unsigned i) { return (blockIdx.x + std::size_t{i} * gridDim.x) * kBulkBytes; };
  const auto load = [&](unsigned i) {
    std::uint64_t* const barrier = &arrived[i % kBulkStages];
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                   std::uint32_t{kBulkBytes});
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stages + i % kBulkStages * kBulkBytes, in + offset(i),
                       std::uint32_t{kBulkBytes}, barrier);
  };
  for (auto& barrier : arrived) ptx::mbarrier_init(&barrier, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  for (unsigned i = 0; i < kBulkStages && i < mine; ++i) load(i);
  for (unsigned i = 0; i < mine; ++i) {
    std::byte* const stage = stages + i % kBulkStages * kBulkBytes;
    while (!ptx::mbarrier_try_wait_parity(&arrived[i % kBulkStages], i / kBulkStages % 2)) {
    }
    ++*reinterpret_cast<std::uint32_t*>(stage);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + offset(i), stage, std::uint32_t{kBulkBytes});
    ptx::cp_async_bulk_commit_group();
    // The stage before this one has been read, and takes the next piece.
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
    if (i != 0 && i - 1 + kBulkStages < mine) load(i - 1 + kBulkStages);
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
#endif
}

/// Answers word after word; ends by itself when the host falls silent for two seconds.
__global__ void answer_kernel(std::uint64_t* question, std::uint64_t* answer, std::uint64_t trips) {
  std::uint64_t since = 0, now = 0;
  for (std::uint64_t i = 1; i <= trips; ++i) {
    since = device_clock_ns();
    while (SystemMemory::load_relaxed(*question) < i) {
      now = device_clock_ns();
      if (now - since > 2'000'000'000) return;
    }
    SystemMemory::store_relaxed(*answer, i);
  }
}

constexpr unsigned kLoneSlots = 64;  // so that each message is written to lines that were read long ago

/// Units from one slot to the next, in whole lines.
constexpr unsigned lone_step(unsigned bytes) { return (units_of(bytes) + 7) / 8 * 8; }

/// Hands lone messages back, every word plus one: what a queue of lone messages can't be faster than. Each team looks
/// at a copy of the slots that is its own, and has a thread for each unit; the slots are flagged
/// (common/ring/flags.hpp).
template <class Group>
__device__ void answer_lone(const Group& team, const Unit* in, Unit* out, unsigned bytes, std::uint64_t trips,
                            std::uint64_t* next) {
  const unsigned mine = team.rank(), units = units_of(bytes);
  std::uint64_t since = 0, now = 0;
  since = device_clock_ns();
  now = since;
  while (true) {
    const std::uint64_t number = team.from_first(SystemMemory::lane_load(*next));
    if (number >= trips) return;
    const std::size_t slot = number % kLoneSlots * lone_step(bytes);
    Unit unit{};
    if (mine < units) unit = SystemMemory::load_unit(in[slot + mine]);
    if (!team.all(mine >= units || unit.flag == flag_of(number))) {
      now = device_clock_ns();
      if (!team.all(now - since <= 2'000'000'000)) return;
      continue;
    }
    const bool won = mine == 0 && SystemMemory::lane_exchange(*next, number, number + 1);
    if (team.from_first(static_cast<std::uint32_t>(won)) == 0) continue;
    for (auto& word : unit.data) ++word;
    if (mine < units) SystemMemory::store_unit(out[slot + mine], unit);
    since = now;
  }
}

/// One block. `in` holds a copy of the slots for each poller.
template <bool by_warp>
__global__ void __launch_bounds__(1024)
    lone_kernel(const Unit* in, Unit* out, unsigned bytes, unsigned pollers, std::uint64_t trips) {
  __shared__ std::uint64_t next;
  __shared__ TeamScratch scratch[16];
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  const unsigned size = blockDim.x / pollers, poller = threadIdx.x / size;
  const Unit* const copy = in + std::size_t{poller} * kLoneSlots * lone_step(bytes);
  if constexpr (by_warp) {
    answer_lone(OneWarp{}, copy, out, bytes, trips, &next);
  } else {
    answer_lone(Team(poller, size, &scratch[poller]), copy, out, bytes, trips, &next);
  }
}

constexpr unsigned kRoundBytes = 64 * 80;  // 64 messages of 64 B with a header of 16
constexpr unsigned kRoundBlocks = 56, kRoundThreads = kRoundBytes / sizeof(uint4), kRounds = 200;
static_assert(std::size_t{kRoundBlocks} * kRounds * kRoundBytes <= kLarge);

/// What a queue with cursors does on the GPU, without a queue or a host: each block by turns, when its time has come,
/// looks at a word in host memory, reads a batch of messages, a piece a thread, writes it back and releases another
/// word. `took`: from the due time to the release, in ns.
__global__ void round_kernel(const uint4* in, uint4* out, std::uint64_t* words, std::uint64_t period_ns, float* took) {
  std::uint64_t& looked_at = words[32 * blockIdx.x];
  std::uint64_t& released = words[32 * blockIdx.x + 16];
  // On a grid of periods, so that the blocks' turns stay apart whenever each was launched.
  std::uint64_t due = (device_clock_ns() / period_ns + 2) * period_ns + period_ns * blockIdx.x / gridDim.x;
  for (unsigned round = 0; round < kRounds; ++round, due += period_ns) {
    if (threadIdx.x == 0) {
      while (device_clock_ns() < due) {
      }
      SystemMemory::load_acquire(looked_at);
    }
    __syncthreads();
    const std::size_t at = (std::size_t{blockIdx.x} * kRounds + round) * kRoundThreads + threadIdx.x;
    uint4 piece = in[at];
    ++piece.x;
    out[at] = piece;
    __syncthreads();
    if (threadIdx.x != 0) continue;
    SystemMemory::store_release(released, round + 1);
    took[blockIdx.x * kRounds + round] = static_cast<float>(device_clock_ns() - due);
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

double lone_message_ns(Device& device, unsigned bytes, unsigned pollers) {
  const unsigned units = units_of(bytes), warps = (units + 31) / 32;
  const std::size_t copy = std::size_t{kLoneSlots} * lone_step(bytes);
  const Buffer memory = device.allocate_host((pollers + 1) * copy * sizeof(Unit), HostMemory::pinned);
  auto* out = reinterpret_cast<Unit*>(memory.data());
  auto* in = out + copy;
  const OneStream stream;
  constexpr std::uint64_t kAll = kTrips + kTrips / 10;  // median_ns warms up with a tenth
  const auto kernel = warps == 1 ? lone_kernel<true> : lone_kernel<false>;
  kernel<<<1, 32 * warps * pollers, 0, stream>>>(in, out, bytes, pollers, kAll);
  launched();
  std::vector<std::uint32_t> message(units * kUnitData / 4 + 4);
  std::uint64_t trip = 0, wrong = 0;
  const double median = median_ns(kTrips, [&] {
    const std::size_t slot = trip % kLoneSlots * lone_step(bytes);
    const auto word = static_cast<std::uint32_t>(trip);
    std::fill(message.begin(), message.end(), word);
    for (unsigned poller = 0; poller < pollers; ++poller) {
      store_flagged(in + poller * copy + slot, trip, reinterpret_cast<const std::byte*>(message.data()), units);
    }
    for (std::uint32_t i = 0; i < units; ++i) {
      Unit unit = SystemMemory::load_unit(out[slot + i]);
      for (std::uint64_t looks = 1; unit.flag != flag_of(trip); ++looks) {
        if (looks % 1'000'000 == 0 && cudaStreamQuery(stream) != cudaErrorNotReady)
          throw Failure("the lone kernel ended");
        unit = SystemMemory::load_unit(out[slot + i]);
      }
      wrong |= (unit.data[0] ^ (word + 1)) | (unit.data[1] ^ (word + 1)) | (unit.data[2] ^ (word + 1));
    }
    ++trip;
  });
  stream.wait();
  if (wrong != 0) throw Failure("the lone kernel answered wrongly");
  return median;
}

/// Of several numbers of pollers: how often the line is looked at, against the copies that the host must write.
double shortest_lone_message_ns(Device& device, unsigned bytes, std::initializer_list<unsigned> pollers) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const unsigned n : pollers) shortest = std::min(shortest, lone_message_ns(device, bytes, n));
  return shortest;
}

/// The `share` percentile of the rounds' times, while they move half of `bytes_per_second`, all together.
double round_ns(Device& device, const Buffer& in, const Buffer& out, double bytes_per_second, double share) {
  const Buffer words = device.allocate_host(std::size_t{kRoundBlocks} * 256, HostMemory::pinned);
  const Buffer near = device.allocate_device(std::size_t{kRoundBlocks} * kRounds * sizeof(float));
  const OneStream stream;
  if (bytes_per_second <= 0) throw Failure("the SM echo was not measured");
  const auto period_ns = static_cast<std::uint64_t>(1e9 * kRoundBlocks * kRoundBytes / (bytes_per_second / 2));
  constexpr unsigned kRuns = 10;
  std::vector<float> all, took(near.size() / sizeof(float));
  for (unsigned run = 0; run <= kRuns; ++run) {
    round_kernel<<<kRoundBlocks, kRoundThreads, 0, stream>>>(
        reinterpret_cast<const uint4*>(in.data()), reinterpret_cast<uint4*>(out.data()),
        reinterpret_cast<std::uint64_t*>(words.data()), period_ns, reinterpret_cast<float*>(near.data()));
    launched();
    copy(took.data(), near.data(), near.size(), cudaMemcpyDeviceToHost, stream);
    stream.wait();
    if (run != 0) all.insert(all.end(), took.begin(), took.end());  // the first one warms up
  }
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(all.size() - 1));
  std::nth_element(all.begin(), at, all.end());
  return *at;
}

bool has_bulk_copies() {
  int device = 0, major = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major >= 9;
}

double bulk_echo_bytes_per_second(const Buffer& in, const Buffer& out, cudaStream_t stream) {
  constexpr unsigned kShared = kBulkStages * kBulkBytes;
  check(cudaFuncSetAttribute(bulk_echo_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
        "cudaFuncSetAttribute");
  std::memset(out.data(), 0, out.size());
  double most = 0;
  for (const unsigned blocks : {16u, 32u, 64u}) {
    const double rate = per_second(kSeconds / 3, [&] {
      bulk_echo_kernel<<<blocks, 1, kShared, stream>>>(in.data(), out.data(), in.size());
      launched();
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    });
    most = std::max(most, rate * static_cast<double>(in.size()));
  }
  for (std::size_t at = 0; at < out.size(); at += kBulkBytes) {
    const auto word = [at](const Buffer& buffer) {
      return *reinterpret_cast<const std::uint32_t*>(buffer.data() + at);
    };
    if (word(out) != word(in) + 1) throw Failure("the bulk copies brought something else");
  }
  return most;
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
  floors.add("lone_message_ns", "ns",
             "64 B to a polling kernel and back, no header, median; of 2, 4 and 8 pollers the best", [&] {
               return shortest_lone_message_ns(device, 64, {2, 4, 8});
             });
  floors.add("lone_4k_message_ns", "ns",
             "4 KiB to a polling kernel and back, no header, median; of 1 and 2 pollers the best", [&] {
               return shortest_lone_message_ns(device, 4096, {1, 2});
             });
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
  double echo = 0;
  floors.add("sm_echo_bytes_per_second", "bytes/s", "a kernel reads pinned memory and writes it back, each way", [&] {
    return echo = bandwidth([&] {
             echo_kernel<<<kBlocks, kThreads, 0, a>>>(in16, out16, kPieces);
             launched();
             a.wait();
           });
  });
  floors.add(
      "round_ns", "ns",
      "look at a word, read 64 messages of 80 B, write them, release a word: 56 blocks at half the SM echo, median",
      [&] { return round_ns(device, in, out, echo, 0.5); });
  floors.add("round_p99_ns", "ns", "the same, 99th percentile", [&] { return round_ns(device, in, out, echo, 0.99); });
  if (!has_bulk_copies()) return;
  floors.add("bulk_echo_bytes_per_second", "bytes/s",
             "a kernel does the same by bulk asynchronous copies of 16 KiB; of 16, 32 and 64 blocks the best, each way",
             [&] { return bulk_echo_bytes_per_second(in, out, a); });
}

}  // namespace feedrate
