#include "kernels/storage/content_kernel.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "kernels/storage/content.hpp"

namespace feedrate::storage {
namespace {

constexpr unsigned kContentThreads = 256;                     // per block of threads
constexpr std::size_t kContentShare = std::size_t{32} << 10;  // bytes per block of threads

#ifdef __CUDACC__
/// All blocks of the grid with the same y work on block y of the list.
__global__ void __launch_bounds__(kContentThreads) content_kernel(const Block* blocks, Verdict* verdicts) {
  const Block block = blocks[blockIdx.y];
  const std::uint64_t rank = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  if (verdicts == nullptr) return fill_content(block.data, block.bytes, block.key, block.offset, rank, threads);
  std::uint64_t first = ~std::uint64_t{0};
  const std::uint64_t wrong = count_wrong(block.data, block.bytes, block.key, block.offset, first, rank, threads);
  clear_content(block.data, block.bytes, rank, threads);
  if (wrong == 0) return;
  atomicAdd(reinterpret_cast<unsigned long long*>(&verdicts[blockIdx.y].wrong), wrong);
  atomicMin(reinterpret_cast<unsigned long long*>(&verdicts[blockIdx.y].first), first);
}
#endif

}  // namespace

void ContentLaunch::with_cuda_launch(const UseCudaLaunch& use) const {
#ifdef __CUDACC__
  if (count_ == 0) return;
  const Block* blocks = blocks_;
  Verdict* verdicts = verdicts_;
  void* arguments[] = {&blocks, &verdicts};
  const auto shares = static_cast<unsigned>(std::max<std::size_t>(1, (largest_ + kContentShare - 1) / kContentShare));
  use({reinterpret_cast<const void*>(content_kernel), {shares, count_}, kContentThreads, 0, arguments});
#else
  static_cast<void>(use);
  throw Failure("built without CUDA");
#endif
}

std::function<void()> ContentLaunch::on_cpu() const {
  return [blocks = blocks_, verdicts = verdicts_, count = count_] {
    for (unsigned i = 0; i < count; ++i) {
      const Block& block = blocks[i];
      if (verdicts == nullptr) {
        fill_content(block.data, block.bytes, block.key, block.offset);
      } else {
        verdicts[i].wrong = count_wrong(block.data, block.bytes, block.key, block.offset, verdicts[i].first);
        clear_content(block.data, block.bytes);
      }
    }
  };
}

}  // namespace feedrate::storage
