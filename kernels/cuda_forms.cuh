#pragma once
#include <algorithm>

#include "common/device/cuda_check.hpp"
#include "common/device/device.hpp"
#include "kernels/group.hpp"

/// The two GPU forms of a workload's functor: a kernel launched for each batch, and a resident kernel that serves
/// rings.
///
/// Small messages are staged: a block pulls a run of them into shared memory by coalesced 16-byte loads, works on them
/// there (a thread or a warp each) and writes whole coalesced lines back. Over the bus that turns many small, strided
/// requests into few large ones. Larger messages are worked on where they lie, a warp or the whole block each.
namespace feedrate {

template <class F, class Group>
FEEDRATE_HD void serve_message(const F&, const Group&, const std::byte*, std::size_t, std::byte*);

inline constexpr unsigned kStagingBytes = 40 << 10;  // below the 48 KiB that every GPU gives without asking
inline constexpr unsigned kLargestStaged = 2048;     // stride; above it too few messages fit to fill a block
inline constexpr unsigned kLargestPerThread = 144;   // stride; above it a warp shares a message

inline __host__ __device__ unsigned staged_at_once(unsigned in_stride, unsigned out_stride) {
  const bool small = in_stride <= kLargestStaged && out_stride <= kLargestStaged;
  return small ? kStagingBytes / (in_stride + out_stride) : 0;
}

/// Copies by the whole block; both sides 16-byte aligned.
inline __device__ void copy_by_block(std::byte* to, const std::byte* from, std::size_t bytes) {
  auto* destination = reinterpret_cast<uint4*>(to);
  const auto* source = reinterpret_cast<const uint4*>(from);
#pragma unroll 4
  for (std::size_t i = threadIdx.x; i < bytes / 16; i += blockDim.x) destination[i] = source[i];
}

/// All messages of `batch` by this block. Every thread of the block must call it.
template <class F>
__device__ void serve_by_block(const F& functor, const BatchView& batch, std::byte* staging) {
  const unsigned warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  const unsigned at_once = staged_at_once(batch.in_stride, batch.out_stride);
  if (at_once == 0) {
    if (batch.count >= warps) {
      for (unsigned i = warp; i < batch.count; i += warps) {
        serve_message(functor, OneWarp{}, batch.in + std::size_t{i} * batch.in_stride, batch.in_stride,
                      batch.out + std::size_t{i} * batch.out_stride);
      }
    } else {
      for (unsigned i = 0; i < batch.count; ++i) {
        serve_message(functor, OneBlock{}, batch.in + std::size_t{i} * batch.in_stride, batch.in_stride,
                      batch.out + std::size_t{i} * batch.out_stride);
      }
    }
    return;
  }
  for (unsigned first = 0; first < batch.count; first += at_once) {
    const unsigned n = min(at_once, batch.count - first);
    std::byte* in = staging;
    std::byte* out = staging + std::size_t{n} * batch.in_stride;
    copy_by_block(in, batch.in + std::size_t{first} * batch.in_stride, std::size_t{n} * batch.in_stride);
    __syncthreads();
    if (batch.in_stride <= kLargestPerThread) {
      for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        serve_message(functor, OneThread{}, in + i * batch.in_stride, batch.in_stride, out + i * batch.out_stride);
      }
    } else {
      for (unsigned i = warp; i < n; i += warps) {
        serve_message(functor, OneWarp{}, in + i * batch.in_stride, batch.in_stride, out + i * batch.out_stride);
      }
    }
    __syncthreads();
    copy_by_block(batch.out + std::size_t{first} * batch.out_stride, out, std::size_t{n} * batch.out_stride);
    __syncthreads();  // the staging may be overwritten
  }
}

template <class F>
__global__ void batch_kernel(F functor, BatchView batch, unsigned per_block) {
  extern __shared__ uint4 staging[];
  const unsigned first = blockIdx.x * per_block;
  batch.in += std::size_t{first} * batch.in_stride;
  batch.out += std::size_t{first} * batch.out_stride;
  batch.count = min(per_block, batch.count - first);
  serve_by_block(functor, batch, reinterpret_cast<std::byte*>(staging));
}

template <class F>
void launch_batch(const F& functor, const BatchView& batch, unsigned block, cudaStream_t stream) {
  if (batch.count == 0) return;
  const unsigned at_once = staged_at_once(batch.in_stride, batch.out_stride);
  const unsigned warps = std::max(1u, block / 32);
  unsigned per_block = 1;  // a large message fills a block by itself
  if (at_once != 0) per_block = std::min(at_once, batch.in_stride <= kLargestPerThread ? block : warps);
  per_block = std::min(per_block, batch.count);
  const unsigned staging = at_once == 0 ? 0 : per_block * (batch.in_stride + batch.out_stride);
  const unsigned grid = (batch.count + per_block - 1) / per_block;
  batch_kernel<<<grid, block, staging, stream>>>(functor, batch, per_block);
  check(cudaGetLastError(), "launching a workload's kernel");
}

inline __device__ std::uint64_t global_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

/// Ends a resident kernel that nobody feeds any more. Looks at the clock now and then only.
class IdleLimit {
 public:
  explicit __device__ IdleLimit(std::uint64_t limit_ns) : limit_ns_(limit_ns) {}
  __device__ bool reached() {
    if (looks_++ % 256 != 0) return false;
    if (looks_ == 1) since_ = global_ns();
    return global_ns() - since_ > limit_ns_;
  }
  __device__ void reset() { looks_ = 0; }

 private:
  std::uint64_t limit_ns_, since_ = 0;
  unsigned looks_ = 0;
};

/// One warp serves a flagged ring, message after message: each look takes in the whole next slot and the stop bits at
/// once. Messages have at most 64 words.
template <class F>
__device__ void serve_flagged(const F& functor, const RingView& ring, std::uint64_t idle_limit_ns, std::byte* staging) {
  const unsigned lane = threadIdx.x % 32, words = ring.in_stride / 4, pairs = ring.out_stride / 8;
  auto* const in = reinterpret_cast<std::uint32_t*>(staging);
  auto* const out = staging + ring.in_stride;
  IdleLimit idle(idle_limit_ns);
  for (std::uint64_t number = 0;;) {
    auto* const slot = reinterpret_cast<std::uint64_t*>(ring.in_slot(number));
    const bool has_low = lane < words, has_high = lane + 32 < words;
    std::uint64_t published = SystemWord(ring.cursors->published.value).load(kRelaxed);
    const std::uint64_t low = has_low ? SystemWord(slot[lane]).load(kRelaxed) : 0;
    const std::uint64_t high = has_high ? SystemWord(slot[lane + 32]).load(kRelaxed) : 0;
    const bool there = (!has_low || low == flagged_word(number, static_cast<std::uint32_t>(low))) &&
                       (!has_high || high == flagged_word(number, static_cast<std::uint32_t>(high)));
    const bool all_there = __all_sync(0xFFFF'FFFFu, there);
    published = __shfl_sync(0xFFFF'FFFFu, published, 0);
    if ((published & kStopNow) != 0) return;
    if (!all_there) {
      const bool done = (published & kStopWhenDone) != 0 && (published & (kStopNow - 1)) <= number;
      if (__any_sync(0xFFFF'FFFFu, done || idle.reached())) return;
      continue;
    }
    if (has_low) in[lane] = static_cast<std::uint32_t>(low);
    if (has_high) in[lane + 32] = static_cast<std::uint32_t>(high);
    __syncwarp();
    serve_message(functor, OneWarp{}, staging, ring.in_stride, out);
    __syncwarp();
    for (unsigned pair = lane; pair < pairs; pair += 32) {
      const auto data = reinterpret_cast<const uint2*>(out)[pair];
      // Each half is written whole: PTX treats a vector access as one access an element.
      asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(ring.out_slot(number) + 16 * pair),
                   "l"(flagged_word(number, data.x)), "l"(flagged_word(number, data.y))
                   : "memory");
    }
    idle.reset();
    ++number;
  }
}

/// A whole block serves a ring by its cursors, all that waits at once.
template <class F>
__device__ void serve_ring(const F& functor, const RingView& ring, std::uint64_t idle_limit_ns, std::byte* staging) {
  __shared__ std::uint64_t first_shared, count_shared;
  const std::uint64_t most = max(64u, staged_at_once(ring.in_stride, ring.out_stride));
  RingServer server(ring);  // used by thread 0 alone
  while (true) {
    if (threadIdx.x == 0) {
      IdleLimit idle(idle_limit_ns);
      std::uint64_t waiting = server.waiting();
      while (waiting == 0 && !server.ended() && !idle.reached()) waiting = server.waiting();
      first_shared = server.taken();
      count_shared = server.ended() ? 0 : ring.contiguous(server.taken(), min(waiting, most));
    }
    // Thread 0 has acquired `published`; the barrier hands what that makes visible on to the whole block.
    __syncthreads();
    const std::uint64_t first = first_shared, count = count_shared;
    if (count == 0) return;
    serve_by_block(
        functor,
        {ring.in_slot(first), ring.out_slot(first), ring.in_stride, ring.out_stride, static_cast<std::uint32_t>(count)},
        staging);
    // The barrier puts every thread's results before thread 0's release of `completed`, which is cumulative.
    __syncthreads();
    if (threadIdx.x == 0) {
      server.take(count);
      server.complete(count);
    }
  }
}

/// Block b serves rings[b] until the ring's stop bit, or until nothing came for `idle_limit_ns`.
template <class F>
__global__ void resident_kernel(F functor, const RingView* rings, std::uint64_t idle_limit_ns) {
  extern __shared__ uint4 staging[];
  const RingView ring = rings[blockIdx.x];
  auto* const stage = reinterpret_cast<std::byte*>(staging);
  if (ring.flagged == 0) {
    serve_ring(functor, ring, idle_limit_ns, stage);
  } else if (threadIdx.x < 32) {
    serve_flagged(functor, ring, idle_limit_ns, stage);
  }
}

template <class F>
void launch_resident(const F& functor, std::span<const RingView> rings, unsigned block, std::uint64_t idle_limit_ns,
                     cudaStream_t stream) {
  resident_kernel<<<static_cast<unsigned>(rings.size()), block, kStagingBytes, stream>>>(functor, rings.data(),
                                                                                         idle_limit_ns);
  check(cudaGetLastError(), "launching a workload's resident kernel");
}

/// How many blocks of the resident kernel this GPU holds at once; more would wait for ever for the first to end.
template <class F>
unsigned resident_blocks(unsigned block) {
  int device = 0, processors = 0, per_processor = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, resident_kernel<F>, static_cast<int>(block),
                                                      kStagingBytes),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return static_cast<unsigned>(processors * per_processor);
}

}  // namespace feedrate
