#pragma once
#include <algorithm>
#include <cstdint>

#include "common/message/message.hpp"
#include "kernels/launch.cuh"

/// Loops over independent items, as a launch: one item per GPU thread and step, or a loop on the CPU device. For inputs
/// and checks, whose speed matters little.
namespace feedrate::ladder {

#ifdef __CUDACC__
template <class Body>
__global__ void __launch_bounds__(256) spread_kernel(Body body) {
  const std::uint64_t count = body.count();
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    body(i);
  }
}
#endif

/// `body(i)` for each i below `body.count()`. The body is copied.
template <class Body>
KernelLaunch<Body> spread(const Body& body) {
  constexpr std::uint64_t kThreads = 256, kMostBlocks = 16384;
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::uint64_t>((body.count() + kThreads - 1) / kThreads, 1, kMostBlocks));
  const auto on_cpu = [body] {
    for (std::uint64_t i = 0, count = body.count(); i < count; ++i) body(i);
  };
#ifdef __CUDACC__
  return {spread_kernel<Body>, {.grid = blocks, .block = kThreads}, on_cpu, body};
#else
  static_cast<void>(blocks);
  return {nullptr, {}, on_cpu, body};
#endif
}

/// Adds to a word that the threads of one launch share. On the CPU device, a launch is one thread.
FEEDRATE_HD inline void add_to(std::uint64_t& word, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(&word), static_cast<unsigned long long>(value));
#else
  word += value;
#endif
}
FEEDRATE_HD inline void lower_to(std::uint64_t& word, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  atomicMin(reinterpret_cast<unsigned long long*>(&word), static_cast<unsigned long long>(value));
#else
  word = value < word ? value : word;
#endif
}

}  // namespace feedrate::ladder
