#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "experiments/harness/limits/cuda_probe.hpp"

/// Ceilings of tensor cores, by operand type. All operands are 1, so that the sums can be checked and the power limit
/// does not lower the clock.
namespace feedrate {
namespace {

namespace wmma = nvcuda::wmma;

constexpr unsigned kProducts = 1024,
                   kFragments = 4;  // products per sum; independent sums per warp
constexpr unsigned kWarps = 8;

template <class Operand, class Sum, int m, int n, int k>
__global__ void wmma_kernel(double* found) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  wmma::fragment<wmma::matrix_a, m, n, k, Operand, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, m, n, k, Operand, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, m, n, k, Sum> sums[kFragments];
  wmma::fill_fragment(a, static_cast<typename decltype(a)::storage_element_type>(1));
  wmma::fill_fragment(b, static_cast<typename decltype(b)::storage_element_type>(1));
  for (auto& sum : sums) wmma::fill_fragment(sum, Sum{});
#pragma unroll 8
  for (unsigned step = 0; step < kProducts; ++step) {
#pragma unroll
    for (auto& sum : sums) wmma::mma_sync(sum, a, b, sum);
  }
  double least = sums[0].x[0];
  for (const auto& sum : sums) {
    for (unsigned i = 0; i < sum.num_elements; ++i) {
      if (static_cast<double>(sum.x[i]) != least) least = -1;
    }
  }
  found[blockIdx.x * blockDim.x + threadIdx.x] = least;
#endif
}

/// Doubles with the larger instruction of compute capability 9.0 (PTX ISA, "mma"), which computes 16 × 8 sums.
__global__ void double_kernel(double* found) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  double sums[kFragments][4] = {};
  const double one = 1;
#pragma unroll 8
  for (unsigned step = 0; step < kProducts; ++step) {
#pragma unroll
    for (auto& sum : sums) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %4, %4, %4, %4, %4, %4, %4}, "
          "{%4, %4, %4, %4}, {%0, %1, %2, %3};\n"
          : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
          : "d"(one));
    }
  }
  double least = sums[0][0];
  for (const auto& sum : sums) {
    for (const double each : sum) {
      if (each != least) least = -1;
    }
  }
  found[blockIdx.x * blockDim.x + threadIdx.x] = least;
#endif
}

/// Operations per second of a kernel in which every step multiplies an m × k matrix by a k × n matrix, kFragments times
/// per warp.
double rate_of(void (*kernel)(double*), unsigned processors, unsigned m, unsigned n, unsigned k) {
  constexpr unsigned kThreads = 32 * kWarps;
  const unsigned blocks = 2 * processors;
  const double products = static_cast<double>(kProducts) * kFragments * kWarps * blocks * m * n * k;
  return 2 * products *
         checked_runs_per_second(
             kThreads * blocks, static_cast<double>(kProducts) * k,
             [&](cudaStream_t stream, double* found) { kernel<<<blocks, kThreads, 0, stream>>>(found); });
}

/// Operations per second with warp instructions, by operand type.
template <class Operand, class Sum, int m, int n, int k>
double wmma_rate(unsigned processors) {
  return rate_of(wmma_kernel<Operand, Sum, m, n, k>, processors, m, n, k);
}
double warp_rate(TensorType type, unsigned processors) {
  switch (type) {
    case TensorType::f16:
      return wmma_rate<__half, float, 16, 16, 16>(processors);
    case TensorType::bf16:
      return wmma_rate<__nv_bfloat16, float, 16, 16, 16>(processors);
    case TensorType::tf32:
      return wmma_rate<wmma::precision::tf32, float, 16, 16, 8>(processors);
    case TensorType::f64:
      return wmma_rate<double, double, 8, 8, 4>(processors);
    case TensorType::i8:
      return wmma_rate<signed char, int, 16, 16, 16>(processors);
    default:
      throw Failure("8-bit floats are measured only on GPUs of compute capability 9.0");
  }
}

template <TensorType type>
double tensor_rate(LimitProbe& probe) {
  const DeviceInfo device = probe.device().info();
  if (device.capability != 90) return warp_rate(type, device.processors);
  if constexpr (type == TensorType::f64) {
    return rate_of(double_kernel, device.processors, 16, 8, 16);
  } else {
    return wgmma_operations_per_second<type>(device.processors);
  }
}

template <TensorType type>
DeviceLimit tensor(const char* operands) {
  return {kPerSecond,
          std::string(operands) +
              " multiplied and added by tensor cores, two operations each; with warpgroup "
              "instructions on compute capability 9.0, else with warp instructions",
          on_gpu, tensor_rate<type>, [](const DeviceInfo& device) {
            return type == TensorType::f8 ? device.capability == 90 : device.capability >= 80;
          }};
}

const DeviceLimitRegistration registered{
    {"tensor_f8_operations_per_second", tensor<TensorType::f8>("8-bit floats (e4m3)")},
    {"tensor_f16_operations_per_second", tensor<TensorType::f16>("half-precision floats")},
    {"tensor_bf16_operations_per_second", tensor<TensorType::bf16>("bfloat16 floats")},
    {"tensor_tf32_operations_per_second", tensor<TensorType::tf32>("TF32 floats")},
    {"tensor_f64_operations_per_second", tensor<TensorType::f64>("doubles")},
    {"tensor_i8_operations_per_second", tensor<TensorType::i8>("8-bit integers")}};

}  // namespace
}  // namespace feedrate
