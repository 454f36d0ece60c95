#include <cuda_fp16.h>

#include "experiments/harness/limits/cuda_probe.hpp"

/// Ceilings of the SMs' arithmetic units, by type. A fused multiply-add is two operations.
namespace feedrate {
namespace {

constexpr unsigned kChains = 8;  // independent chains per thread, so that no operation waits for the previous one
constexpr unsigned kSteps = 4096;

__device__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }
__device__ __half2 multiply_add(__half2 a, __half2 b, __half2 c) { return __hfma2(a, b, c); }
__device__ int multiply_add(int a, int b, int c) { return a * b + c; }

template <class T>
__device__ T from_float(float value) {
  return static_cast<T>(value);
}
template <>
__device__ __half2 from_float<__half2>(float value) {
  return __float2half2_rn(value);
}
__device__ float to_sum(float value) { return value; }
__device__ float to_sum(double value) { return static_cast<float>(value); }
__device__ float to_sum(int value) { return static_cast<float>(value); }
__device__ float to_sum(__half2 value) { return __low2float(value) + __high2float(value); }

template <class T>
__global__ void multiply_add_kernel(float scale, float offset, float* sink) {
  T chains[kChains];
  for (unsigned i = 0; i < kChains; ++i) chains[i] = from_float<T>(static_cast<float>(threadIdx.x + i));
  const T a = from_float<T>(scale), b = from_float<T>(offset);
#pragma unroll 4
  for (unsigned step = 0; step < kSteps; ++step) {
#pragma unroll
    for (unsigned i = 0; i < kChains; ++i) chains[i] = multiply_add(chains[i], a, b);
  }
  float sum = 0;
  for (unsigned i = 0; i < kChains; ++i) sum += to_sum(chains[i]);
  if (sum == 12345.0f) *sink = sum;  // almost never true, but keeps the arithmetic
}

/// `lanes` is the number of operands in a T.
template <class T, unsigned lanes = 1>
double multiply_adds(LimitProbe& probe) {
  constexpr unsigned kThreads = 512, kBlocksOfSm = 4;
  const unsigned blocks = kBlocksOfSm * probe.device().info().processors;
  auto* const sink = reinterpret_cast<float*>(probe.near(0).data());
  const double operations = 2.0 * lanes * kChains * kSteps * kThreads * blocks;
  return operations * runs_per_second([&](cudaStream_t stream) {
           multiply_add_kernel<T><<<blocks, kThreads, 0, stream>>>(0.999f, 0.5f, sink);
         });
}

const DeviceLimitRegistration registered{
    {"fma_f64_operations_per_second",
     {kPerSecond, "fused multiply-adds in double precision, two operations each", on_gpu, multiply_adds<double>,
      has_gpu}},
    {"fma_f32_operations_per_second",
     {kPerSecond, "fused multiply-adds in single precision, two operations each", on_gpu, multiply_adds<float>,
      has_gpu}},
    {"fma_f16_operations_per_second",
     {kPerSecond, "fused multiply-adds of pairs in half precision as nvcc compiles them, four operations each", on_gpu,
      multiply_adds<__half2, 2>, has_gpu}},
    {"fma_i32_operations_per_second",
     {kPerSecond, "multiply-adds of 32-bit integers, two operations each", on_gpu, multiply_adds<int>, has_gpu}}};

}  // namespace
}  // namespace feedrate
