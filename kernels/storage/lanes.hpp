#pragma once
#include <cstdint>

#include "common/message/message.hpp"
#include "common/ring/memory.hpp"
#ifndef __CUDA_ARCH__
#include "common/threads/threads.hpp"
#endif

/// Groups of threads that access storage together, and the words that they share. The code that uses them is a template
/// over the group, so that it runs as a warp of a GPU and as a thread of the CPU device.
namespace feedrate::storage {

/// One thread of the CPU device.
struct OneLane {
  static constexpr unsigned kCount = 1;
  FEEDRATE_HD unsigned rank() const { return 0; }
  FEEDRATE_HD std::uint32_t ballot(bool value) const { return value ? 1 : 0; }
  template <class Word>
  FEEDRATE_HD Word from(unsigned /*lane*/, Word value) const {
    return value;
  }
  FEEDRATE_HD void sync() const {}
  /// A wait: called between two polls, lets other threads run.
  class Wait {
   public:
    FEEDRATE_HD void operator()() {
#ifndef __CUDA_ARCH__
      backoff_.wait();
#endif
    }

   private:
#ifndef __CUDA_ARCH__
    Backoff backoff_;
#endif
  };
};

#ifdef __CUDACC__
/// A warp of a GPU. All of its threads must make each call, except those of Wait.
struct WarpLanes {
  static constexpr unsigned kCount = 32;
  __device__ unsigned rank() const { return threadIdx.x % kCount; }
  __device__ std::uint32_t ballot(bool value) const { return __ballot_sync(0xFFFF'FFFFu, value); }
  template <class Word>
  __device__ Word from(unsigned lane, Word value) const {
    return __shfl_sync(0xFFFF'FFFFu, value, static_cast<int>(lane));
  }
  __device__ void sync() const { __syncwarp(); }
  struct Wait {
    __device__ void operator()() const { __nanosleep(200); }
  };
};
#endif

/// Index of the lowest set bit; `mask` must not be 0.
inline FEEDRATE_HD unsigned lowest_bit(std::uint32_t mask) {
#ifdef __CUDA_ARCH__
  return static_cast<unsigned>(__ffs(static_cast<int>(mask))) - 1;
#else
  return static_cast<unsigned>(__builtin_ctz(mask));
#endif
}
inline FEEDRATE_HD unsigned bits_in(std::uint32_t mask) {
#ifdef __CUDA_ARCH__
  return static_cast<unsigned>(__popc(mask));
#else
  return static_cast<unsigned>(__builtin_popcount(mask));
#endif
}

/// Calls `body(lane)` for each set bit of `mask`, with all lanes.
template <class Body>
FEEDRATE_HD void for_each_lane(std::uint32_t mask, const Body& body) {
  for (; mask != 0; mask &= mask - 1) body(lowest_bit(mask));
}

/// Words that the threads of one device share.
struct DeviceWords {
#ifdef __CUDACC__
  using Word = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>;
#else
  using Word = std::atomic_ref<std::uint64_t>;
#endif
  static constexpr auto kRelaxed = SystemMemory::kRelaxed;
  static constexpr auto kAcquire = SystemMemory::kAcquire;
  static constexpr auto kRelease = SystemMemory::kRelease;
  static constexpr auto kAcquireRelease = SystemMemory::kAcquireRelease;
  static FEEDRATE_HD std::uint64_t peek(std::uint64_t& word) { return Word(word).load(kRelaxed); }
  static FEEDRATE_HD std::uint64_t load(std::uint64_t& word) { return Word(word).load(kAcquire); }
  static FEEDRATE_HD void store(std::uint64_t& word, std::uint64_t value) { Word(word).store(value, kRelease); }
  /// Returns the previous value.
  static FEEDRATE_HD std::uint64_t add(std::uint64_t& word, std::uint64_t value) {
    return Word(word).fetch_add(value, kAcquireRelease);
  }
  static FEEDRATE_HD std::uint64_t exchange(std::uint64_t& word, std::uint64_t value) {
    return Word(word).exchange(value, kAcquireRelease);
  }
  static FEEDRATE_HD bool replace(std::uint64_t& word, std::uint64_t& expected, std::uint64_t value) {
    return Word(word).compare_exchange_strong(expected, value, kAcquireRelease, kAcquire);
  }
  static FEEDRATE_HD void lower(std::uint64_t& word, std::uint64_t value) {
    std::uint64_t found = peek(word);
    while (value < found && !replace(word, found, value)) {
    }
  }
  static FEEDRATE_HD void raise(std::uint64_t& word, std::uint64_t value) {
    std::uint64_t found = peek(word);
    while (value > found && !replace(word, found, value)) {
    }
  }
};

}  // namespace feedrate::storage
