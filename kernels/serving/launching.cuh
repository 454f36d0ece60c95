#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "common/device/cuda_check.hpp"
#include "common/device/device.hpp"
#include "kernels/serving/batch.cuh"
#include "kernels/serving/resident.cuh"

/// Launches kernels by address. Their functor was compiled by nvcc or at run time. `functor` points to the functor's
/// bytes, which the kernel takes by value.
namespace feedrate {

template <class... Arguments>
const void* address_of(void (*kernel)(Arguments...)) {
  return reinterpret_cast<const void*>(kernel);
}

/// Calls `use` with the launch for a batch; `kernel` is a batch_kernel.
inline void with_batch_launch(const void* kernel, const void* functor, const void* recorder, BatchView batch,
                              unsigned block, const UseCudaLaunch& use) {
  if (batch.count == 0) return;
  const unsigned at_once = staged_at_once(kStagingBytes, batch.in_stride, batch.out_stride);
  const unsigned warps = std::max(1u, block / 32);
  unsigned per_block = 1;  // one large message fills a block
  if (at_once != 0) per_block = std::min(at_once, batch.in_stride <= kLargestPerThread ? block : warps);
  per_block = std::min(per_block, batch.count);
  unsigned staging = at_once == 0 ? 0 : per_block * (batch.in_stride + batch.out_stride);
  const unsigned grid = (batch.count + per_block - 1) / per_block;
  void* arguments[] = {const_cast<void*>(functor), &batch, const_cast<void*>(recorder), &per_block, &staging};
  use({kernel, grid, block, staging, arguments});
}

/// Addresses of the resident kernels, by form (kernels/serving/resident_limits.hpp).
using ResidentKernels = std::array<const void*, kResidentForms>;

inline bool teams_are_warps(const ResidentShape& shape) { return shape.block == 32 * shape.pollers; }

inline unsigned resident_form(const LaneView& lane, const ResidentShape& shape) {
  if (lane.notify == Notify::counter) return 0;
  if (messages_per_poll(lane, shape, kStagingBytes / shape.pollers) > 1) return kMany;
  const unsigned team = shape.block / shape.pollers;
  return (lane.in_units + team - 1) / team;
}

/// Bytes of shared memory for the staging of a resident block. More staging means fewer round trips and fences per
/// message. There are more SMs than lanes, so each block has an SM to itself.
inline unsigned resident_staging(const void* kernel) {
  constexpr int kMax = 128 << 10, kStatic = 4 << 10;
  int device = 0, most = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  const int staging = std::max<int>(kStagingBytes, std::min(kMax, most - kStatic));
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, staging), "cudaFuncSetAttribute");
  return static_cast<unsigned>(staging);
}

/// Launches `kernel`, the resident_kernel for these lanes. All lanes must have the same form.
inline void launch_resident(const void* kernel, const void* functor, std::span<const LaneView> lanes,
                            ResidentShape shape, cudaStream_t stream) {
  const unsigned staging = resident_staging(kernel);
  const LaneView* first = lanes.data();
  void* arguments[] = {const_cast<void*>(functor), &first, &shape};
  check(cudaLaunchKernel(kernel, static_cast<unsigned>(lanes.size()), shape.block, arguments, staging, stream),
        "launching a workload's resident kernel");
}

/// Number of blocks of the resident kernels that run concurrently on this GPU; further blocks would wait forever for
/// the first ones to end. This call loads the kernels, so their first launch is not delayed.
inline unsigned resident_blocks(const ResidentKernels& kernels, const ResidentShape& shape) {
  int device = 0, processors = 0, fewest = std::numeric_limits<int>::max();
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  for (const void* const kernel : kernels) {
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(shape.block),
                                                        resident_staging(kernel)),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    fewest = std::min(fewest, blocks);
  }
  return static_cast<unsigned>(processors * fewest);
}

}  // namespace feedrate
