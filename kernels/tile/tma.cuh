#pragma once
#include <cuda.h>

#include "kernels/tile/barrier.cuh"

/// Copies of boxes by the tensor memory accelerator (PTX ISA, "cp.async.bulk.tensor"). One thread starts a copy.
/// Coordinates are in elements: x along a row, y the row, z the matrix.
namespace feedrate::tile {

/// Brings the description of a matrix to where the copies look for it.
__device__ inline void prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(&map) : "memory");
}

/// Copies a box to shared memory; its bytes count at the barrier.
__device__ inline void load_box(void* to, const CUtensorMap& map, Barrier& barrier, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];\n" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z)
      : "memory");
}
/// Copies a box to the same place in all blocks of `blocks` (a bit per rank in the cluster), and counts its bytes at
/// each block's barrier.
__device__ inline void load_box_to_all(void* to, const CUtensorMap& map, Barrier& barrier, int x, int y, int z,
                                       std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%3, %4, %5}], [%2], %6;\n" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(x), "r"(y), "r"(z), "h"(blocks)
      : "memory");
}
/// Copies a box from shared memory. Before, after_writes() and a barrier of the threads that wrote it.
__device__ inline void store_box(const CUtensorMap& map, const void* from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];\n" ::"l"(&map),
               "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
               : "memory");
}
/// Makes this thread's writes to shared memory visible to copies.
__device__ inline void after_writes() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }
__device__ inline void end_stores() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }
/// Waits until at most `groups` groups of this thread's stores still read their shared memory.
template <int groups>
__device__ void await_reads_of_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(groups) : "memory");
}

}  // namespace feedrate::tile
