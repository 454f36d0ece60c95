#pragma once
#include <cuda_runtime.h>

#include <algorithm>

#include "common/device/cuda_check.hpp"
#include "common/device/launchable.hpp"

namespace feedrate::ladder {

/// The order in which the blocks of a persistent kernel compute tiles: down the rows of a group of eight rows of tiles,
/// then on to the next column. Blocks that run at the same time then work on a compact part of the result, whose
/// operands fit into the L2 cache.
class TileOrder {
 public:
  struct Place {
    int row, column, which;  ///< first row and column in elements; matrix of the batch
  };
  __device__ TileOrder(int m, int n, int batch, int rows, int columns)
      : rows_(rows),
        columns_(columns),
        down_((m + rows - 1) / rows),
        across_((n + columns - 1) / columns),
        batch_(batch) {}
  __device__ int count() const { return down_ * across_ * batch_; }
  __device__ Place at(int number) const {
    constexpr int kGroup = 8;
    const int which = number / (down_ * across_), in_matrix = number % (down_ * across_);
    const int group = in_matrix / (kGroup * across_), first = group * kGroup, rest = in_matrix % (kGroup * across_);
    const int high = down_ - first < kGroup ? down_ - first : kGroup;
    return {(first + rest % high) * rows_, rest / high * columns_, which};
  }

 private:
  int rows_, columns_, down_, across_, batch_;
};

/// Number of SMs of the current GPU.
inline unsigned processors() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  return static_cast<unsigned>(count);
}

/// Number of clusters of this many blocks that run at once on the current GPU; some SMs may fit into none. Waiting
/// clusters of a persistent kernel would begin when all tiles are done.
template <class Kernel>
unsigned clusters_that_fit(Kernel* kernel, unsigned blocks, unsigned threads, unsigned shared_bytes) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel), shared_bytes);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {blocks, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int count = 0;
  check(cudaOccupancyMaxActiveClusters(&count, kernel, &config), "cudaOccupancyMaxActiveClusters");
  return static_cast<unsigned>(std::max(count, 1));
}

}  // namespace feedrate::ladder
