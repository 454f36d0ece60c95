#pragma once
#include "kernels/stages/item.hpp"
#include "kernels/stages/stage_kernel.hpp"

namespace feedrate {

/// The words of an item, after its header.
inline FEEDRATE_HD const std::uint64_t* words_of(const std::byte* item) {
  return reinterpret_cast<const std::uint64_t*>(item + sizeof(ItemHeader));
}
inline FEEDRATE_HD std::uint64_t* words_of(std::byte* item) {
  return reinterpret_cast<std::uint64_t*>(item + sizeof(ItemHeader));
}

/// Does one thread's share of a stage's work on an item: words `rank`, `rank + size`, … Returns its share of the
/// checksum if the stage computes one.
inline FEEDRATE_HD std::uint64_t work_on_words(const StageWork& work, const std::byte* in, std::byte* out,
                                               std::uint64_t rank, std::uint64_t size) {
  if (work.kind == StageKind::generate) {
    const std::uint64_t base = item_base(*reinterpret_cast<const std::uint64_t*>(in));
    for (std::uint64_t w = rank; w < work.words; w += size) {
      words_of(out)[w] = through_stage(base + w * kItemStep, work.stage, work.rounds);
    }
    return 0;
  }
  std::uint64_t sum = 0;
  for (std::uint64_t w = rank; w < work.words; w += size) {
    const std::uint64_t word = through_stage(words_of(in)[w], work.stage, work.rounds);
    if (work.kind == StageKind::reduce) {
      sum += word * weight_of(w);
    } else {
      words_of(out)[w] = word;
    }
  }
  return sum;
}

/// The header that a stage writes into its output item.
inline FEEDRATE_HD ItemHeader header_after(const StageWork& work, const std::byte* in) {
  const std::uint64_t id = work.kind == StageKind::generate ? *reinterpret_cast<const std::uint64_t*>(in)
                                                            : reinterpret_cast<const ItemHeader*>(in)->id;
  return {id, 0, 0, {}};
}

/// Does all of a stage's work on an item, with one host thread.
inline void work_alone(const StageWork& work, const std::byte* in, std::byte* out) {
  ItemHeader header = header_after(work, in);
  header.sum = work_on_words(work, in, out, 0, 1);
  *reinterpret_cast<ItemHeader*>(out) = header;
}

#ifdef __CUDACC__
/// Does the share of the work that belongs to block number `block` out of `blocks`. `partial`: shared memory for one
/// word per warp. Ends with a block-wide barrier.
__device__ inline void work_as_block(const StageWork& work, const std::byte* in, std::byte* out, unsigned block,
                                     unsigned blocks, std::uint64_t* partial) {
  const std::uint64_t rank = std::uint64_t{block} * blockDim.x + threadIdx.x;
  std::uint64_t sum = work_on_words(work, in, out, rank, std::uint64_t{blocks} * blockDim.x);
  if (work.kind != StageKind::reduce) {
    if (rank == 0) *reinterpret_cast<ItemHeader*>(out) = header_after(work, in);
    __syncthreads();
    return;
  }
  for (unsigned step = 16; step != 0; step /= 2) sum += __shfl_down_sync(0xFFFF'FFFFu, sum, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) sum += partial[warp];
    auto* const result = reinterpret_cast<ItemHeader*>(out);
    atomicAdd(reinterpret_cast<unsigned long long*>(&result->sum), static_cast<unsigned long long>(sum));
    __threadfence();
    const auto before = atomicAdd(reinterpret_cast<unsigned long long*>(&result->arrived), 1ull);
    if (before + 1 == blocks) result->id = reinterpret_cast<const ItemHeader*>(in)->id;
  }
  __syncthreads();
}
#endif

}  // namespace feedrate
