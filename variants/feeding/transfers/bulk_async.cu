#ifdef __CUDACC__
#include <cuda/ptx>
#endif

#include "common/error.hpp"
#include "variants/feeding/transfers/bounds.hpp"
#include "variants/feeding/transfers/in_flight.hpp"
#ifdef __CUDACC__
#include "common/device/cuda_check.hpp"
#endif

namespace feedrate {
namespace {

struct Options {
  unsigned copy_blocks = 16;
};
const Axes<Options>& block_axes() {
  static const auto kAxes = Axes<Options>().number("copy-blocks", &Options::copy_blocks, {1, 512},
                                                   "blocks per copying kernel, which is the maximum number of SMs");
  return kAxes;
}

constexpr unsigned kStages = 4, kPieceBytes = 16 << 10;  // pieces in flight per block; bytes per copy

#ifdef __CUDACC__
/// Copies through shared memory in pieces of kPieceBytes, which the blocks take in turn. One thread per block keeps
/// kStages pieces in flight; the SM's copy unit does the rest. `bytes` and both addresses are multiples of 16. Needs
/// sm_90.
__global__ void __launch_bounds__(32) bulk_copy_kernel(const std::byte* in, std::byte* out, std::size_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  namespace ptx = cuda::ptx;
  extern __shared__ __align__(128) std::byte stages[];
  __shared__ std::uint64_t arrived[kStages];
  if (threadIdx.x != 0) return;
  const std::size_t pieces = (bytes + kPieceBytes - 1) / kPieceBytes;
  const auto mine = static_cast<unsigned>(pieces > blockIdx.x ? (pieces - blockIdx.x - 1) / gridDim.x + 1 : 0);
  const auto offset = [&](unsigned i) { return (blockIdx.x + std::size_t{i} * gridDim.x) * kPieceBytes; };
  const auto size = [&](unsigned i) {
    const std::size_t left = bytes - offset(i);
    return static_cast<std::uint32_t>(left < kPieceBytes ? left : kPieceBytes);
  };
  const auto stage = [&](unsigned i) { return stages + i % kStages * kPieceBytes; };
  const auto load = [&](unsigned i) {
    std::uint64_t* const barrier = &arrived[i % kStages];
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier, size(i));
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage(i), in + offset(i), size(i), barrier);
  };
  for (auto& barrier : arrived) ptx::mbarrier_init(&barrier, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  for (unsigned i = 0; i < kStages && i < mine; ++i) load(i);
  for (unsigned i = 0; i < mine; ++i) {
    while (!ptx::mbarrier_try_wait_parity(&arrived[i % kStages], i / kStages % 2)) {
    }
    // The copy unit also stores the data: no thread touches it, so no fence between the proxies is needed.
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + offset(i), stage(i), size(i));
    ptx::cp_async_bulk_commit_group();
    // The previous stage has been read and can take the next piece.
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
    if (i != 0 && i - 1 + kStages < mine) load(i - 1 + kStages);
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
#endif
}
#endif

/// A copy that a kernel makes.
class BulkCopy final : public Launchable {
 public:
  BulkCopy(unsigned blocks, const std::byte* in, std::byte* out, std::size_t bytes)
      : blocks_(blocks), in_(in), out_(out), bytes_(bytes) {}
  void with_cuda_launch(const UseCudaLaunch& use) const override {
#ifdef __CUDACC__
    const std::byte* in = in_;
    std::byte* out = out_;
    std::size_t bytes = bytes_;
    const auto pieces = static_cast<unsigned>((bytes + kPieceBytes - 1) / kPieceBytes);
    void* arguments[] = {&in, &out, &bytes};
    if (bytes != 0) {
      use({reinterpret_cast<const void*>(bulk_copy_kernel), std::min(blocks_, pieces), 32, kStages * kPieceBytes,
           arguments});
    }
#else
    static_cast<void>(use);
    throw Failure("built without CUDA");
#endif
  }
  std::function<void()> on_cpu() const override { throw Failure("the CPU device has no bulk asynchronous copies"); }

 private:
  [[maybe_unused]] unsigned blocks_;
  [[maybe_unused]] const std::byte* in_;
  [[maybe_unused]] std::byte* out_;
  [[maybe_unused]] std::size_t bytes_;
};

/// Works like `pinned`, but SMs copy instead of the copy engines: one kernel pulls the batch, the workload's kernel
/// processes it, and another kernel pushes the results. A launch costs as much as a copy call, and a few SMs can
/// saturate the bus.
class BulkAsync final : public StreamedTransfer {
 public:
  explicit BulkAsync(const TransferConfig& config)
      : StreamedTransfer(config, {.buffers = true, .copies = true}), blocks_(block_axes().of(config.own).copy_blocks) {
#ifdef __CUDACC__
    check(cudaFuncSetAttribute(bulk_copy_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kStages * kPieceBytes),
          "cudaFuncSetAttribute");
#endif
  }

 private:
  void queue(InFlight::Place& place, const Batch& batch) override {
    const std::size_t in_bytes = batch.in.count * batch.in.stride, out_bytes = batch.in.count * batch.out.stride;
    Stream& stream = *place.stream;
    stream.launch(BulkCopy(blocks_, batch.in.base, place.in.data(), in_bytes));
    in_flight_.copied_in(place, batch);
    stream.launch(config_.workload, view(place.in.data(), place.out.data(), batch), config_.block);
    stream.launch(BulkCopy(blocks_, place.out.data(), batch.out.base, out_bytes));
  }

  unsigned blocks_;
};

std::string why_not(const DeviceInfo& device) {
  return device.capability >= 90 ? "" : "bulk_async needs a GPU of compute capability 9.0 or later";
}

const TransferRegistration registered(
    "bulk_async",
    {.description = "SMs pull batches from pinned memory and push results by bulk asynchronous copies, without copy "
                    "engines",
     .memory = HostMemory::pinned,
     .axes = joined(InFlight::axes().list(), block_axes().list()),
     .depth = InFlight::depth,
     .make = make_transfer<BulkAsync>,
     .bounds =
         [](const BoundedPoint& bounded, Bounds& bounds) {
           bounds.bytes("bulk_echo_bytes_per_second", bounded.slot());
           limit_by_launches(bounded, bounds);
         },
     .why_unsupported = why_not,
     .batch_time = [](const BoundedPoint& bounded, const Limits& limits) -> std::optional<BatchTime> {
       const auto launches = value_of(limits, "launch_per_second"), lone = value_of(limits, "launch_sync_ns");
       const auto bus = bus_ns(bounded, limits, "bulk_echo_bytes_per_second");
       if (!launches || !lone || !bus) return std::nullopt;
       return BatchTime{std::max(3e9 / *launches, *bus), *lone + 2e9 / *launches + 2 * *bus};
     },
     .search = {{"streams", {"2", "4", "8"}}, {"copy-blocks", {"4", "16", "32"}}, {"block", {"256", "512"}}}});

}  // namespace
}  // namespace feedrate
