#include <type_traits>

#include "experiments/harness/limits/cuda_probe.hpp"

/// Tensor cores with warpgroup instructions, which exist only on compute capability 9.0 (PTX ISA, "wgmma.mma_async").
namespace feedrate {
namespace {

constexpr unsigned kRows = 64, kColumns = 128;      // result of one instruction
constexpr unsigned kRowBytes = 128;                 // consecutive bytes per row of the operands
constexpr unsigned kGroups = 3;                     // warpgroups per SM: while one waits, others compute
constexpr unsigned kSums = kRows * kColumns / 128;  // per thread
constexpr unsigned kQueued = 16, kBatches = 256;    // instructions per batch of a warpgroup; number of batches

/// Operands of a TensorType, all equal to 1, so that the sums are known.
struct Ones {
  std::uint32_t word;  // as many operands as fit into 32 bits
  unsigned depth;      // products per sum and instruction
};
constexpr Ones ones_of(TensorType type) {
  switch (type) {
    case TensorType::f8:
      return {0x3838'3838, 32};  // e4m3
    case TensorType::i8:
      return {0x0101'0101, 32};
    case TensorType::f16:
      return {0x3C00'3C00, 16};
    case TensorType::bf16:
      return {0x3F80'3F80, 16};
    default:
      return {0x3F80'0000, 8};  // tf32
  }
}

/// Descriptor of operands in shared memory: rows of 128 bytes, swizzled in groups of eight (PTX ISA, "matrix
/// descriptor").
__device__ std::uint64_t descriptor_of(const void* operands) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(operands));
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kGroupStride = 8 * kRowBytes;
  return (address >> 4 & 0x3FFF) | std::uint64_t{1} << 16 | kGroupStride >> 4 << 32 | kSwizzle128;
}

#define FEEDRATE_4(constraint, i) \
  constraint(sums[i]), constraint(sums[i + 1]), constraint(sums[i + 2]), constraint(sums[i + 3])
#define FEEDRATE_16(constraint, i)                                                         \
  FEEDRATE_4(constraint, i), FEEDRATE_4(constraint, i + 4), FEEDRATE_4(constraint, i + 8), \
      FEEDRATE_4(constraint, i + 12)
#define FEEDRATE_SUMS(constraint) \
  FEEDRATE_16(constraint, 0), FEEDRATE_16(constraint, 16), FEEDRATE_16(constraint, 32), FEEDRATE_16(constraint, 48)
#define FEEDRATE_REGISTERS                                                                \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, " \
  "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, " \
  "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, " \
  "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
// `types` and `more`, which follows the operands, differ by type. `%66` selects whether the instruction adds to the
// sums or overwrites them.
#define FEEDRATE_WGMMA(types, more, constraint)                                                       \
  asm volatile(                                                                                       \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned." types " {" FEEDRATE_REGISTERS "}, %64, %65, adds" more ";\n}\n" \
      : FEEDRATE_SUMS(constraint)                                                                     \
      : "l"(a), "l"(b), "r"(adds))

template <TensorType type, class Sum>
__device__ void multiply(Sum (&sums)[kSums], std::uint64_t a, std::uint64_t b, int adds) {
  if constexpr (type == TensorType::f8) FEEDRATE_WGMMA("m64n128k32.f32.e4m3.e4m3", ", 1, 1", "+f");
  if constexpr (type == TensorType::f16) FEEDRATE_WGMMA("m64n128k16.f32.f16.f16", ", 1, 1, 0, 0", "+f");
  if constexpr (type == TensorType::bf16) FEEDRATE_WGMMA("m64n128k16.f32.bf16.bf16", ", 1, 1, 0, 0", "+f");
  if constexpr (type == TensorType::tf32) FEEDRATE_WGMMA("m64n128k8.f32.tf32.tf32", ", 1, 1", "+f");
  if constexpr (type == TensorType::i8) FEEDRATE_WGMMA("m64n128k32.s32.s8.s8", "", "+r");
}

/// Runs one block per SM. `begins_anew` is 0, but the compiler must not know this: it would omit sums that are
/// overwritten. `found` receives the sum of each thread, or -1 if the thread's sums differ.
template <TensorType type>
__global__ void __launch_bounds__(128 * kGroups, 1) wgmma_kernel(std::uint32_t one, int begins_anew, double* found) {
  using Sum = std::conditional_t<type == TensorType::i8, int, float>;
  __shared__ __align__(1024) std::uint32_t left[kRows * kRowBytes / 4];
  __shared__ __align__(1024) std::uint32_t right[kColumns * kRowBytes / 4];
  for (unsigned i = threadIdx.x; i < kRows * kRowBytes / 4; i += blockDim.x) left[i] = one;
  for (unsigned i = threadIdx.x; i < kColumns * kRowBytes / 4; i += blockDim.x) right[i] = one;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const std::uint64_t a = descriptor_of(left), b = descriptor_of(right);
  Sum sums[kSums] = {};
  // Each batch restarts its sums, because sums of 8-bit floats have fewer bits than single precision.
  for (unsigned batch = 0; batch < kBatches; ++batch) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (unsigned i = 0; i < kQueued; ++i) multiply<type>(sums, a, b, i == 0 ? begins_anew : 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  double least = sums[0], most = sums[0];
  for (const Sum sum : sums) {
    least = fmin(least, static_cast<double>(sum));
    most = fmax(most, static_cast<double>(sum));
  }
  if (least != most) least = -1;
  found[blockIdx.x * blockDim.x + threadIdx.x] = least;
}

}  // namespace

template <TensorType type>
double wgmma_operations_per_second(unsigned processors) {
  constexpr Ones kOnes = ones_of(type);
  constexpr unsigned kThreads = 128 * kGroups;
  const double instructions = static_cast<double>(kQueued) * kBatches * kGroups * processors;
  return instructions * 2 * kRows * kColumns * kOnes.depth *
         checked_runs_per_second(kThreads * processors, kQueued * kOnes.depth, [&](cudaStream_t stream, double* found) {
           wgmma_kernel<type><<<processors, kThreads, 0, stream>>>(kOnes.word, 0, found);
         });
}
template double wgmma_operations_per_second<TensorType::f8>(unsigned);
template double wgmma_operations_per_second<TensorType::f16>(unsigned);
template double wgmma_operations_per_second<TensorType::bf16>(unsigned);
template double wgmma_operations_per_second<TensorType::tf32>(unsigned);
template double wgmma_operations_per_second<TensorType::i8>(unsigned);

}  // namespace feedrate
