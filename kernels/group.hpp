#pragma once
#include <cstdint>

#include "common/message.hpp"

/// The threads that share one message. A workload's functor is written against any of these: it takes every
/// `size()`-th piece from `rank()` on, and adds up over the group with `sum`.
namespace feedrate {

struct alignas(16) Vec16 {
  std::uint32_t word[4];
};

/// One thread of the GPU, or the CPU device.
struct OneThread {
  FEEDRATE_HD unsigned rank() const { return 0; }
  FEEDRATE_HD unsigned size() const { return 1; }
  FEEDRATE_HD std::uint32_t sum(std::uint32_t value) const { return value; }
};

#ifdef __CUDACC__
struct OneWarp {
  __device__ unsigned rank() const { return threadIdx.x % 32; }
  __device__ unsigned size() const { return 32; }
  __device__ std::uint32_t sum(std::uint32_t value) const { return __reduce_add_sync(0xFFFF'FFFFu, value); }
};

struct OneBlock {
  __device__ unsigned rank() const { return threadIdx.x; }
  __device__ unsigned size() const { return blockDim.x; }
  /// Every thread of the block must call it.
  __device__ std::uint32_t sum(std::uint32_t value) const {
    __shared__ std::uint32_t partial[32];
    value = OneWarp{}.sum(value);
    __syncthreads();  // the previous message's partial sums have been read
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    std::uint32_t total = 0;
    for (unsigned warp = 0; warp < (blockDim.x + 31) / 32; ++warp) total += partial[warp];
    return total;
  }
};
#endif

/// Calls `f(i)` for this thread's share of `n` 16-byte pieces.
template <class Group, class F>
FEEDRATE_HD void for_each_piece(const Group& group, std::size_t n, F&& f) {
#ifdef __CUDA_ARCH__
#pragma unroll 4  // several loads in flight: over the bus, bandwidth is bytes in flight by round trip
#endif
  for (std::size_t i = group.rank(); i < n; i += group.size()) f(i);
}

/// Zeroes what of piece `i` lies behind `bytes`, and returns the sum of its words.
FEEDRATE_HD inline std::uint32_t trim_and_sum(Vec16& piece, std::size_t i, std::size_t bytes) {
  const std::size_t begin = i * sizeof(Vec16);
  if (begin + sizeof(Vec16) > bytes) {
    for (unsigned w = 0; w < 4; ++w) {
      const std::size_t at = begin + 4 * w;
      const std::size_t kept = bytes > at ? bytes - at : 0;
      if (kept < 4) piece.word[w] &= (std::uint32_t{1} << (8 * kept)) - 1;
    }
  }
  return piece.word[0] + piece.word[1] + piece.word[2] + piece.word[3];
}

}  // namespace feedrate
