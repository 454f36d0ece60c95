#pragma once
#include <cstdint>

#include "kernels/tile/async_copy.cuh"

/// Barriers in shared memory on which threads wait for other threads and for bytes (PTX ISA, "mbarrier"; compute
/// capability 9.0).
namespace feedrate::tile {

struct Barrier {
  std::uint64_t bits;
};

/// One thread prepares a barrier whose phases end after this many arrivals; see after_init().
__device__ inline void init(Barrier& barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}
/// Makes prepared barriers visible to the copies and to the other blocks of the cluster. All threads must synchronize
/// afterwards.
__device__ inline void after_init() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n" ::: "memory");
}
__device__ inline void arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(shared_address(&barrier)) : "memory");
}
/// Arrives at the same barrier of another block of the cluster, after reads of shared memory. It publishes no writes:
/// an arrival with release semantics at the scope of the cluster waits for the whole GPU's memory, every time. Writes
/// to the stage may come before it if TMA has read them, because a copy that has read a write comes after it.
__device__ inline void arrive_after_reads(Barrier& barrier, unsigned block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n}\n" ::"r"(shared_address(&barrier)),
      "r"(block)
      : "memory");
}
/// Arrives, and lets the phase also wait for this many bytes of copies.
__device__ inline void arrive_expecting(Barrier& barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}
/// Waits for the end of the phase with this parity (0 for the first one). A barrier that stays silent for 30 seconds
/// ends the kernel with an error instead of occupying the GPU for ever; reading the time takes long, so it is read once
/// in 1024 tries. The loop is in assembly, so that the compiler moves no registers of running products around it.
__device__ inline void wait(Barrier& barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred ended, over;\n.reg .b32 tries;\n.reg .u64 now, last;\nmov.u32 tries, 0;\nmov.u64 last, 0;\n"
      "TRY:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 ended, [%0], %1;\n@ended bra DONE;\n"
      "add.u32 tries, tries, 1;\nsetp.lt.u32 over, tries, 1024;\n@over bra TRY;\n"
      "mov.u32 tries, 0;\nmov.u64 now, %%globaltimer;\nsetp.eq.u64 over, last, 0;\n"
      "@over add.u64 last, now, 30000000000;\nsetp.gt.u64 over, now, last;\n@over trap;\nbra TRY;\nDONE:\n}\n" ::"r"(
          shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

/// A place in a ring of stages, each with its barriers.
template <int stages>
struct Cursor {
  int stage = 0;
  unsigned parity = 0;
  __device__ void advance() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Waits until all 128 threads that call it with this number, from 1 to 15, have arrived (PTX ISA, "barrier").
__device__ inline void synchronize_warpgroup(unsigned number) {
  asm volatile("barrier.sync.aligned %0, 128;\n" ::"r"(number) : "memory");
}

/// This block's place in its cluster.
__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}
/// Waits until all threads of the cluster have arrived here.
__device__ inline void synchronize_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

}  // namespace feedrate::tile
