#include <algorithm>
#include <cstring>
#include <cuda/ptx>

#include "experiments/harness/limits/cuda_probe.hpp"

/// Ceilings of the bus between the host and a GPU, with copy engines, with SMs and with bulk asynchronous copies.
namespace feedrate {
namespace {

constexpr unsigned kBlocks = 64, kThreads = 512;  // shape of the SM probes; measurements show that it saturates the bus
constexpr std::size_t kPieces = LimitProbe::kLarge / sizeof(uint4);

__global__ void read_kernel(const uint4* host, std::size_t n, uint4* sink) {
  uint4 sum{};
#pragma unroll 8
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) {
    const uint4 v = host[i];
    sum.x ^= v.x, sum.y ^= v.y, sum.z ^= v.z, sum.w ^= v.w;
  }
  if ((sum.x | sum.y | sum.z | sum.w) == 0xFFFF'FFFFu) *sink = sum;  // never true, but keeps the loads
}

__global__ void write_kernel(uint4* host, std::size_t n, unsigned value) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) {
    host[i] = uint4{value, value, value, value};
  }
}

constexpr unsigned kBulkStages = 4, kBulkBytes = 16 << 10;

/// Reads and writes back with bulk asynchronous copies through shared memory. One thread per block keeps `kBulkStages`
/// copies of `kBulkBytes` in flight. Needs sm_90.
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
    // Once the previous stage has been read, it takes the next piece.
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
    if (i != 0 && i - 1 + kBulkStages < mine) load(i - 1 + kBulkStages);
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
#endif
}

double bulk_echo_bytes_per_second(LimitProbe& probe) {
  const Buffer &in = probe.host(0), &out = probe.host(1);
  constexpr unsigned kShared = kBulkStages * kBulkBytes;
  check(cudaFuncSetAttribute(bulk_echo_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared),
        "cudaFuncSetAttribute");
  std::memset(out.data(), 0, out.size());
  const OneStream stream;
  double most = 0;
  for (const unsigned blocks : {16u, 32u, 64u}) {
    const double rate = per_second(kReadingSeconds / 3, [&] {
      bulk_echo_kernel<<<blocks, 1, kShared, stream>>>(in.data(), out.data(), in.size());
      stream.wait();
    });
    most = std::max(most, rate * static_cast<double>(in.size()));
  }
  for (std::size_t at = 0; at < out.size(); at += kBulkBytes) {
    const auto word = [at](const Buffer& buffer) {
      return *reinterpret_cast<const std::uint32_t*>(buffer.data() + at);
    };
    if (word(out) != word(in) + 1) throw Failure("the bulk copies returned wrong data");
  }
  return most;
}

/// Bytes per second of the work that `queue(stream)` queues, which moves LimitProbe::kLarge bytes.
template <class Queue>
double bandwidth(const Queue& queue) {
  return static_cast<double>(LimitProbe::kLarge) * runs_per_second(queue);
}

double copies_to_device(LimitProbe& probe) {
  const Buffer &from = probe.host(0), &to = probe.near(0);
  return bandwidth(
      [&](cudaStream_t stream) { copy(to.data(), from.data(), LimitProbe::kLarge, cudaMemcpyHostToDevice, stream); });
}

double copies_to_host(LimitProbe& probe) {
  const Buffer &from = probe.near(1), &to = probe.host(1);
  return bandwidth(
      [&](cudaStream_t stream) { copy(to.data(), from.data(), LimitProbe::kLarge, cudaMemcpyDeviceToHost, stream); });
}

double copies_both_ways(LimitProbe& probe) {
  const OneStream out;
  const Buffer &host_in = probe.host(0), &near_in = probe.near(0), &near_out = probe.near(1), &host_out = probe.host(1);
  return bandwidth([&](cudaStream_t in) {
    copy(near_in.data(), host_in.data(), LimitProbe::kLarge, cudaMemcpyHostToDevice, in);
    copy(host_out.data(), near_out.data(), LimitProbe::kLarge, cudaMemcpyDeviceToHost, out);
    out.wait();
  });
}

double sm_reads(LimitProbe& probe) {
  const auto* from = pieces(probe.host(0));
  auto* sink = mutable_pieces(probe.near(1));
  return bandwidth([&](cudaStream_t stream) { read_kernel<<<kBlocks, kThreads, 0, stream>>>(from, kPieces, sink); });
}

double sm_writes(LimitProbe& probe) {
  auto* to = mutable_pieces(probe.host(1));
  return bandwidth([&](cudaStream_t stream) { write_kernel<<<kBlocks, kThreads, 0, stream>>>(to, kPieces, 7); });
}

const DeviceLimitRegistration registered{
    {"copy_engine_h2d_bytes_per_second",
     {kBytesPerSecond, "64 MiB copies from pinned memory", on_bus, copies_to_device, has_gpu, true}},
    {"copy_engine_d2h_bytes_per_second",
     {kBytesPerSecond, "64 MiB copies to pinned memory", on_bus, copies_to_host, has_gpu, true}},
    {"copy_engine_both_bytes_per_second",
     {kBytesPerSecond, "64 MiB copies from and to pinned memory at once, each way", on_bus, copies_both_ways, has_gpu,
      true}},
    {"sm_read_host_bytes_per_second", {kBytesPerSecond, "a kernel reads pinned memory", on_bus, sm_reads, has_gpu}},
    {"sm_write_host_bytes_per_second", {kBytesPerSecond, "a kernel writes pinned memory", on_bus, sm_writes, has_gpu}},
    {"sm_echo_bytes_per_second",
     {kBytesPerSecond, "a kernel reads pinned memory and writes it back, each way", on_bus, sm_echo_bytes_per_second,
      has_gpu}},
    {"bulk_echo_bytes_per_second",
     {kBytesPerSecond, "as sm_echo, with bulk asynchronous copies of 16 KiB; best of 16, 32 and 64 blocks, each way",
      on_bus, bulk_echo_bytes_per_second, [](const DeviceInfo& device) { return device.capability >= 90; }}}};

}  // namespace

double sm_echo_bytes_per_second(LimitProbe& probe) {
  const auto* in = pieces(probe.host(0));
  auto* out = mutable_pieces(probe.host(1));
  return bandwidth([&](cudaStream_t stream) { echo_kernel<<<kBlocks, kThreads, 0, stream>>>(in, out, kPieces); });
}

}  // namespace feedrate
