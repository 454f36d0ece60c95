#pragma once
#include <cstdint>

#include "common/message/message.hpp"

/// The threads that share one message. A workload's functor works with any of these groups: each thread takes every
/// `size()`-th piece, starting at `rank()`, and reduces over the group with `sum`.
namespace feedrate {

struct alignas(16) Vec16 {
  std::uint32_t word[4];
};

/// One thread of the GPU or of the CPU device.
struct OneThread {
  static constexpr unsigned kAtOnce = 4;  ///< loads issued before the first use, because messages may be across the bus
  FEEDRATE_HD unsigned rank() const { return 0; }
  FEEDRATE_HD unsigned size() const { return 1; }
  FEEDRATE_HD std::uint32_t sum(std::uint32_t value) const { return value; }
};

#ifdef __CUDACC__
struct OneWarp {
  static constexpr unsigned kAtOnce = 4;
  __device__ unsigned rank() const { return threadIdx.x % 32; }
  __device__ unsigned size() const { return 32; }
  __device__ std::uint32_t sum(std::uint32_t value) const { return __reduce_add_sync(0xFFFF'FFFFu, value); }
  __device__ void sync() const { __syncwarp(); }
  __device__ bool all(bool value) const { return __all_sync(0xFFFF'FFFFu, value) != 0; }
  /// Returns the value of the thread of rank 0. Also acts as a barrier, like `sync`.
  template <class Word>
  __device__ Word from_first(Word value) const {
    value = __shfl_sync(0xFFFF'FFFFu, value, 0);
    __syncwarp();  // a shuffle does not order memory accesses
    return value;
  }
};

/// Shared memory that a team needs to exchange values.
struct TeamScratch {
  std::uint32_t partial[32];
  std::uint64_t word;
};

/// One or more warps of a block, up to all of them, with their own barrier. All threads of the team must make each
/// call.
class Team {
 public:
  static constexpr unsigned kAtOnce = 4;
  /// Team number `index` of the block's teams; a block has barriers for sixteen teams.
  __device__ Team(unsigned index, unsigned size, TeamScratch* scratch)
      : barrier_(index), size_(size), scratch_(scratch) {}
  __device__ unsigned rank() const { return threadIdx.x - barrier_ * size_; }
  __device__ unsigned size() const { return size_; }
  __device__ void sync() const { asm volatile("barrier.sync %0, %1;" ::"r"(barrier_), "r"(size_) : "memory"); }
  __device__ bool all(bool value) const {
    std::uint32_t result;
    asm volatile(
        "{ .reg .pred mine, every; setp.ne.u32 mine, %1, 0; barrier.red.and.pred every, %2, %3, mine; "
        "selp.u32 %0, 1, 0, every; }"
        : "=r"(result)
        : "r"(static_cast<std::uint32_t>(value)), "r"(barrier_), "r"(size_)
        : "memory");
    return result != 0;
  }
  __device__ std::uint64_t from_first(std::uint64_t value) const {
    sync();  // the previous word has been read
    if (rank() == 0) scratch_->word = value;
    sync();
    return scratch_->word;
  }
  __device__ std::uint32_t sum(std::uint32_t value) const {
    value = OneWarp{}.sum(value);
    sync();  // the previous message's partial sums have been read
    if (rank() % 32 == 0) scratch_->partial[rank() / 32] = value;
    sync();
    std::uint32_t total = 0;
    for (unsigned warp = 0; warp < size_ / 32; ++warp) total += scratch_->partial[warp];
    return total;
  }

 private:
  unsigned barrier_, size_;
  TeamScratch* scratch_;
};

/// A group whose messages are in shared memory: loads are fast, so short code matters more than loads in flight.
template <class Group>
struct SharedMemoryGroup : Group {
  static constexpr unsigned kAtOnce = 1;
  explicit __device__ SharedMemoryGroup(const Group& group) : Group(group) {}
};
#endif

/// Calls `use(i, load(i))` for this thread's share of `n` 16-byte pieces. It issues several loads before it uses the
/// first, also in the last round: over the bus, bandwidth is bytes in flight divided by the round-trip time, and the
/// compiler may not move a load ahead of a store on which it might depend.
template <class Group, class Load, class Use>
FEEDRATE_HD void map_pieces(const Group& group, std::size_t n, Load&& load, Use&& use) {
#ifdef __CUDA_ARCH__
  constexpr unsigned kAtOnce = Group::kAtOnce;
  const unsigned size = group.size(), end = static_cast<unsigned>(n);
  for (unsigned first = group.rank(); first < end; first += kAtOnce * size) {
    decltype(load(0)) pieces[kAtOnce];
#pragma unroll
    for (unsigned k = 0; k < kAtOnce; ++k) {
      if (first + k * size < end) pieces[k] = load(first + k * size);
    }
#pragma unroll
    for (unsigned k = 0; k < kAtOnce; ++k) {
      if (first + k * size < end) use(first + k * size, pieces[k]);
    }
  }
#else
  for (std::size_t i = group.rank(); i < n; i += group.size()) use(i, load(i));
#endif
}

/// Zeroes the part of piece `i` that is past `bytes`, and returns the sum of its words.
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
