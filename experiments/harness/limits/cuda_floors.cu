#include <cuda/ptx>

#include <algorithm>
#include <cstring>

#include "experiments/harness/limits/cuda_probe.hpp"
#include "experiments/harness/limits/floors.hpp"

/// What the GPU and its bus allow, by bare CUDA calls on pinned memory: DESIGN's rule "floors first". Launches, copies
/// and bandwidths; cuda_polling.cu has the kernels that wait for the host.
namespace feedrate {
namespace {

constexpr std::size_t kLarge = std::size_t{64} << 20;  // bytes of a bandwidth probe: several times the L2
constexpr unsigned kBlocks = 64, kThreads = 512;       // of the SM probes: enough to fill the bus, measured
constexpr unsigned kTimings = 200;

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

/// Units of `chain` side by side in one graph, a second, with two graphs queued at any time.
double graph_chains_per_second(const std::function<void(cudaGraph_t, std::size_t index)>& add_chain) {
  constexpr std::size_t kChains = 64;
  const OneStream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  for (std::size_t i = 0; i < kChains; ++i) add_chain(graph, i);
  check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  const double graphs = per_second(kReadingSeconds, [&] {
    for (int i = 0; i < 8; ++i) check(cudaGraphLaunch(ready, stream), "cudaGraphLaunch");
    stream.wait();
  });
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  return 8 * kChains * graphs;
}

cudaGraphNode_t add_echo(cudaGraph_t graph, const std::byte* in, std::byte* out, cudaGraphNode_t after) {
  const auto* from = reinterpret_cast<const uint4*>(in);
  auto* to = reinterpret_cast<uint4*>(out);
  std::size_t pieces = 4;
  void* arguments[] = {&from, &to, &pieces};
  cudaKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(echo_kernel);
  parameters.gridDim = 1;
  parameters.blockDim = 32;
  parameters.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  check(
      cudaGraphAddKernelNode(&node, graph, after == nullptr ? nullptr : &after, after == nullptr ? 0 : 1, &parameters),
      "cudaGraphAddKernelNode");
  return node;
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
    const double rate = per_second(kReadingSeconds / 3, [&] {
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
    return static_cast<double>(kLarge) * per_second(kReadingSeconds, body);
  };

  floors.add("launch_sync_ns", "ns", "empty kernel: launch and synchronize, median", [&] {
    return median_ns(kTimings, [&] {
      empty_kernel<<<1, 1, 0, a>>>();
      launched();
      a.wait();
    });
  });
  floors.add("launch_per_second", "1/s", "empty kernels queued in one stream", [&] {
    const double rate = per_second(kReadingSeconds, [&] {
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
             [&] { return word_floor_ns(device); });
  floors.add("lone_message_ns", "ns",
             "64 B to a polling kernel and back, no header, median; of 2, 4 and 8 pollers the best", [&] {
               return lone_message_floor_ns(device, 64, {2, 4, 8});
             });
  floors.add("lone_4k_message_ns", "ns",
             "4 KiB to a polling kernel and back, no header, median; of 1 and 2 pollers the best", [&] {
               return lone_message_floor_ns(device, 4096, {1, 2});
             });
  floors.add("copy_queued_ns", "ns", "64 B copies to the device, queued in one stream, each", [&] {
    constexpr int kQueued = 256;
    return 1e9 / kQueued / per_second(kReadingSeconds, [&] {
             for (int i = 0; i < kQueued; ++i) copy(near_in.data(), in.data(), kSmall, cudaMemcpyHostToDevice, a);
             a.wait();
           });
  });
  floors.add("graph_kernels_per_second", "1/s",
             "kernels that read and write 64 B of pinned memory, 64 side by side in a graph", [&] {
               return graph_chains_per_second([&](cudaGraph_t graph, std::size_t i) {
                 add_echo(graph, in.data() + i * kSmall, out.data() + i * kSmall, nullptr);
               });
             });
  floors.add("graph_chains_per_second", "1/s",
             "64 B: copy in, kernel, copy out; 64 such chains side by side in a graph", [&] {
               return graph_chains_per_second([&](cudaGraph_t graph, std::size_t i) {
                 const std::size_t at = i * kSmall;
                 cudaGraphNode_t copied_in = nullptr, copied_out = nullptr;
                 check(cudaGraphAddMemcpyNode1D(&copied_in, graph, nullptr, 0, near_in.data() + at, in.data() + at,
                                                kSmall, cudaMemcpyHostToDevice),
                       "cudaGraphAddMemcpyNode1D");
                 const auto worked = add_echo(graph, near_in.data() + at, near_out.data() + at, copied_in);
                 check(cudaGraphAddMemcpyNode1D(&copied_out, graph, &worked, 1, out.data() + at, near_out.data() + at,
                                                kSmall, cudaMemcpyDeviceToHost),
                       "cudaGraphAddMemcpyNode1D");
               });
             });
  if (device.copies_in_batches()) {
    floors.add("batched_copies_per_second", "1/s",
               "64 B copies by one thread's calls of 64, a call each way at once, then a wait; each way", [&] {
                 constexpr std::size_t kCopies = 64;
                 const auto to_device = device.stream(), to_host = device.stream();
                 std::vector<Copy> ins, outs;
                 for (std::size_t at = 0; at < kCopies * kSmall; at += kSmall) {
                   ins.push_back({near_in.data() + at, in.data() + at, kSmall});
                   outs.push_back({out.data() + at, near_out.data() + at, kSmall});
                 }
                 return kCopies * per_second(kReadingSeconds, [&] {
                          to_device->copy_batch(ins, Direction::to_device);
                          to_host->copy_batch(outs, Direction::to_host);
                          to_device->synchronize();
                          to_host->synchronize();
                        });
               });
  }
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
      [&] { return round_floor_ns(device, in, out, echo, 0.5); });
  floors.add("round_p99_ns", "ns", "the same, 99th percentile",
             [&] { return round_floor_ns(device, in, out, echo, 0.99); });
  if (!has_bulk_copies()) return;
  floors.add("bulk_echo_bytes_per_second", "bytes/s",
             "a kernel does the same by bulk asynchronous copies of 16 KiB; of 16, 32 and 64 blocks the best, each way",
             [&] { return bulk_echo_bytes_per_second(in, out, a); });
}

}  // namespace feedrate
