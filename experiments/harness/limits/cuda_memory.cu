#include <algorithm>

#include "experiments/harness/limits/cuda_probe.hpp"

/// Ceilings of a GPU's own memory: DRAM and L2.
namespace feedrate {
namespace {

constexpr std::size_t kInDram = std::size_t{1} << 30;  // bytes; 20 times the L2 of an H100

/// Each block reads its share repeatedly, bypassing the L1.
__global__ void read_l2_kernel(const uint4* from, std::size_t n, unsigned passes, uint4* sink) {
  uint4 sum{};
  for (unsigned pass = 0; pass < passes; ++pass) {
#pragma unroll 8
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) {
      const uint4 v = __ldcg(from + i);
      sum.x ^= v.x, sum.y ^= v.y, sum.z ^= v.z, sum.w ^= v.w;
    }
  }
  if ((sum.x & sum.y & sum.z & sum.w) == 0x1234'5678u) *sink = sum;  // never true, but keeps the loads
}

double l2_read_bytes_per_second(LimitProbe& probe) {
  constexpr unsigned kPasses = 500;
  const std::size_t bytes = std::min<std::size_t>(std::size_t{8} << 20, probe.device().info().cache / 2);
  const unsigned blocks = 2 * probe.device().info().processors;
  const Buffer &from = probe.near(0), &sink = probe.near(1);
  return static_cast<double>(bytes) * kPasses * runs_per_second([&](cudaStream_t stream) {
           read_l2_kernel<<<blocks, 1024, 0, stream>>>(pieces(from), bytes / sizeof(uint4), kPasses,
                                                       mutable_pieces(sink));
         });
}

double dram_copy_bytes_per_second(LimitProbe& probe) {
  const Buffer from = probe.device().allocate_device(kInDram, Fresh::as_is);
  const Buffer to = probe.device().allocate_device(kInDram, Fresh::as_is);
  constexpr int kQueued = 4;
  return static_cast<double>(kInDram) * kQueued * runs_per_second([&](cudaStream_t stream) {
           for (int i = 0; i < kQueued; ++i) {
             copy(to.data(), from.data(), kInDram, cudaMemcpyDeviceToDevice, stream);
           }
         });
}

const DeviceLimitRegistration registered{
    {"dram_copy_bytes_per_second",
     {kBytesPerSecond, "1 GiB copies within device memory; counts copied bytes; each is read and written", on_gpu,
      dram_copy_bytes_per_second, has_gpu}},
    {"l2_read_bytes_per_second",
     {kBytesPerSecond, "a kernel reads 8 MiB, or half of a smaller L2, repeatedly, bypassing the L1", on_gpu,
      l2_read_bytes_per_second, has_gpu}}};

}  // namespace
}  // namespace feedrate
