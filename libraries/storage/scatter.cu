#include "libraries/storage/scatter.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/error.hpp"

namespace feedrate::storage {
namespace {

constexpr unsigned kScatterThreads = 128;                    // per block of threads
constexpr std::size_t kScatterShare = std::size_t{8} << 10;  // bytes per block of threads

#ifdef __CUDACC__
/// Copies the words of one size of a copy, by threads that lie side by side.
template <class Word>
__device__ void copy_words(const Copy& copy, std::uint64_t rank, std::uint64_t threads) {
  auto* const to = reinterpret_cast<Word*>(copy.to);
  const auto* const from = reinterpret_cast<const Word*>(copy.from);
  const std::uint64_t words = copy.bytes / sizeof(Word);
#pragma unroll 4
  for (std::uint64_t i = rank; i < words; i += threads) to[i] = from[i];
}

/// All blocks of the grid with the same y work on copy y of the list.
__global__ void __launch_bounds__(kScatterThreads) scatter_kernel(const Copy* list) {
  const Copy copy = list[blockIdx.y];
  const std::uint64_t rank = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t bits =
      reinterpret_cast<std::uintptr_t>(copy.to) | reinterpret_cast<std::uintptr_t>(copy.from) | copy.bytes;
  if (bits % 16 == 0) return copy_words<uint4>(copy, rank, threads);
  if (bits % 4 == 0) return copy_words<std::uint32_t>(copy, rank, threads);
  copy_words<unsigned char>(copy, rank, threads);
}
#endif

}  // namespace

void ScatterLaunch::with_cuda_launch(const UseCudaLaunch& use) const {
#ifdef __CUDACC__
  if (count_ == 0) return;
  const Copy* list = list_;
  void* arguments[] = {&list};
  const auto shares = static_cast<unsigned>(std::max<std::size_t>(1, (largest_ + kScatterShare - 1) / kScatterShare));
  use({reinterpret_cast<const void*>(scatter_kernel), {shares, count_}, kScatterThreads, 0, arguments});
#else
  static_cast<void>(use);
  throw Failure("built without CUDA");
#endif
}

std::function<void()> ScatterLaunch::on_cpu() const {
  return [list = list_, count = count_] {
    for (unsigned i = 0; i < count; ++i) std::memcpy(list[i].to, list[i].from, list[i].bytes);
  };
}

}  // namespace feedrate::storage
