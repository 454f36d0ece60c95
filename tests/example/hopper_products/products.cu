#include "tests/example/hopper_products/products.hpp"

#include <cmath>

namespace feedrate::hopper_products {
namespace {

float to_float(Half half) {
  return half == 0 ? 0 : std::ldexp(1 + static_cast<float>(half & 0x3FF) / 1024, (half >> 10) - 15);
}

#ifdef __CUDACC__
constexpr unsigned kThreads = 128;  // a warpgroup

/// Descriptor of the core matrices of 8 × 8 elements, 128 bytes each (PTX ISA, "wgmma", no swizzle).
__device__ std::uint64_t descriptor_of(const void* operands, std::uint64_t along_depth, std::uint64_t along_rows) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(operands));
  return (address >> 4 & 0x3FFF) | along_depth >> 4 << 16 | along_rows >> 4 << 32;
}

__global__ void __launch_bounds__(kThreads) product_kernel(const Half* operands, float* results) {
  __shared__ __align__(128) Half left[kLeft];
  __shared__ __align__(128) Half right[kRight];
  const Half* const mine = operands + blockIdx.x * (kLeft + kRight);
  for (unsigned i = threadIdx.x; i < kLeft; i += kThreads) {
    const unsigned row = i / kDepth, k = i % kDepth;
    left[((row / 8 * 2 + k / 8) * 8 + row % 8) * 8 + k % 8] = mine[i];
  }
  for (unsigned i = threadIdx.x; i < kRight; i += kThreads) {
    const unsigned column = i / kDepth, k = i % kDepth;
    right[(k / 8 * 8 + column) * 8 + k % 8] = mine[kLeft + i];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const std::uint64_t a = descriptor_of(left, 128, 256), b = descriptor_of(right, 128, 256);
  float sums[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\n"
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
               : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, column = lane % 4 * 2;
  float* const result = results + blockIdx.x * kResult;
  for (unsigned i = 0; i < 4; ++i) result[(row + i / 2 * 8) * kColumns + column + i % 2] = sums[i];
}
#endif

}  // namespace

void multiply(const Half* left, const Half* right, float* result) {
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < kDepth; ++k) {
        sum += to_float(left[row * kDepth + k]) * to_float(right[column * kDepth + k]);
      }
      result[row * kColumns + column] = sum;
    }
  }
}

KernelLaunch<const Half*, float*> products(const std::byte* operands, std::byte* results, unsigned count) {
  const auto* const from = reinterpret_cast<const Half*>(operands);
  auto* const to = reinterpret_cast<float*>(results);
  const auto on_cpu = [=] {
    for (std::size_t i = 0; i < count; ++i) {
      const Half* const left = from + i * (kLeft + kRight);
      multiply(left, left + kLeft, to + i * kResult);
    }
  };
#ifdef __CUDACC__
  return {product_kernel, {.grid = count, .block = kThreads}, on_cpu, from, to};
#else
  return {nullptr, {}, on_cpu, from, to};
#endif
}

}  // namespace feedrate::hopper_products
