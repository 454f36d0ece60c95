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

/// Where a block's staged results go: side by side, or flagged into a ring's slots.
struct PlainResults {
  std::byte* out;
  __device__ void operator()(const std::byte* staged, unsigned first, unsigned n, unsigned stride) const {
    copy_by_block(out + std::size_t{first} * stride, staged, std::size_t{n} * stride);
  }
};
struct FlaggedResults {
  RingView ring;
  std::uint64_t number;  ///< of the first message
  __device__ void operator()(const std::byte* staged, unsigned first, unsigned n, unsigned stride) const {
    const unsigned pairs = stride / 8;  // two 32-bit words of a result become one 16-byte store
    for (unsigned i = threadIdx.x; i < n * pairs; i += blockDim.x) {
      const unsigned message = i / pairs, pair = i % pairs;
      const auto data = reinterpret_cast<const uint2*>(staged + message * stride)[pair];
      const std::uint64_t at = number + first + message;
      // Each half is written whole: PTX treats a vector access as one access an element.
      asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(ring.out_slot(at) + 16 * pair),
                   "l"(flagged_word(at, data.x)), "l"(flagged_word(at, data.y))
                   : "memory");
    }
  }
};

/// All messages of `batch` by this block; `results` takes those that were staged. Every thread must call it.
template <class F, class Results>
__device__ void serve_by_block(const F& functor, const BatchView& batch, const Results& results, std::byte* staging) {
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
    results(out, first, n, batch.out_stride);
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
  serve_by_block(functor, batch, PlainResults{batch.out}, reinterpret_cast<std::byte*>(staging));
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

/// Block b serves rings[b] until the ring's stop bit, or until nothing came for `idle_limit_ns`.
template <class F>
__global__ void resident_kernel(F functor, const RingView* rings, std::uint64_t idle_limit_ns) {
  extern __shared__ uint4 staging[];
  __shared__ std::uint64_t first_shared, count_shared;
  const RingView ring = rings[blockIdx.x];
  const unsigned result_stride = ring.flagged_bytes != 0 ? ring.flagged_bytes : ring.out_stride;
  const std::uint64_t most = max(64u, staged_at_once(ring.in_stride, result_stride));
  RingServer server(ring);  // used by thread 0 alone
  while (true) {
    if (threadIdx.x == 0) {
      const std::uint64_t since = global_ns();
      std::uint64_t waiting = server.waiting();
      while (waiting == 0 && !server.ended() && global_ns() - since < idle_limit_ns) waiting = server.waiting();
      first_shared = server.taken();
      count_shared = server.ended() ? 0 : ring.contiguous(server.taken(), min(waiting, most));
    }
    // Thread 0 has acquired `published`; the barrier hands what that makes visible on to the whole block.
    __syncthreads();
    const std::uint64_t first = first_shared, count = count_shared;
    if (count == 0) return;
    const BatchView batch{ring.in_slot(first), ring.out_slot(first), ring.in_stride, result_stride,
                          static_cast<std::uint32_t>(count)};
    auto* const stage = reinterpret_cast<std::byte*>(staging);
    if (ring.flagged_bytes != 0) {
      serve_by_block(functor, batch, FlaggedResults{ring, first}, stage);
      if (threadIdx.x == 0) server.take(count);
      continue;
    }
    serve_by_block(functor, batch, PlainResults{batch.out}, stage);
    // The barrier puts every thread's results before thread 0's release of `completed`, which is cumulative.
    __syncthreads();
    if (threadIdx.x == 0) {
      server.take(count);
      server.complete(count);
    }
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
