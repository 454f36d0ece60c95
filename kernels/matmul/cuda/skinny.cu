#include "kernels/matmul/cuda/tensor.cuh"
#include "kernels/tile/mma.cuh"

/// Products with few rows, as in the decoding of a language model: reading B limits, so each byte of it is read once,
/// in pieces of 16 bytes, straight into the registers that mma.sync multiplies.
namespace feedrate::ladder::skinny {
namespace {

constexpr int kColumns = 16, kWarps = 8, kThreads = 32 * kWarps;
constexpr int kDepth = 32;     // elements of k per warp and step: 8 per lane
constexpr int kUnrolled = 4;   // steps whose loads run at the same time
constexpr int kMostTiles = 8;  // of 16 rows

/// Eight elements from k on of a row, or zeros if it does not exist.
__device__ uint4 load(const tile::Operand<std::byte>& operand, int row, int last_row, int k, int last_k) {
  if (row >= last_row || k >= last_k) return {};
  return __ldcs(reinterpret_cast<const uint4*>(operand.at(blockIdx.z, row, k * 2)));
}

/// A block computes `tiles` × 16 rows of 16 columns; its warps share the k. A lane loads eight consecutive elements of
/// a row, although a fragment has two and two of them: the order of k does not matter if it is the same in A and B.
template <Element element, int tiles>
__global__ void __launch_bounds__(kThreads) skinny_kernel(TensorProduct<element> product) {
  __shared__ float shared[kWarps][16][kColumns];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int column = static_cast<int>(blockIdx.x) * kColumns, last_k = product.k / 2;
  float sums[tiles][2][4] = {};
  for (int first = warp * kDepth; first < last_k; first += kWarps * kDepth * kUnrolled) {
    uint4 right[kUnrolled][2];
#pragma unroll
    for (int step = 0; step < kUnrolled; ++step) {
      const int k = first + step * kWarps * kDepth + lane % 4 * 8;
      right[step][0] = load(product.right, column + lane / 4, product.n, k, last_k);
      right[step][1] = load(product.right, column + 8 + lane / 4, product.n, k, last_k);
    }
#pragma unroll
    for (int step = 0; step < kUnrolled; ++step) {
      const int k = first + step * kWarps * kDepth + lane % 4 * 8;
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        const uint4 upper = load(product.left, tile * 16 + lane / 4, product.m, k, last_k);
        const uint4 lower = load(product.left, tile * 16 + 8 + lane / 4, product.m, k, last_k);
        const std::uint32_t even[4] = {upper.x, lower.x, upper.y, lower.y},
                            odd[4] = {upper.z, lower.z, upper.w, lower.w};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          tile::multiply<element>(sums[tile][half], even, right[step][half].x, right[step][half].y);
          tile::multiply<element>(sums[tile][half], odd, right[step][half].z, right[step][half].w);
        }
      }
    }
  }
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      shared[warp][lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[tile][i / 4][i % 4];
    }
    __syncthreads();
    const int row = static_cast<int>(threadIdx.x) / kColumns, at = static_cast<int>(threadIdx.x) % kColumns;
    float one[1] = {};
#pragma unroll
    for (int each = 0; each < kWarps; ++each) one[0] += shared[each][row][at];
    tile::store(product.result, blockIdx.z, tile * 16 + row, column + at, product.m, product.n, one);
    __syncthreads();
  }
}

template <Element element>
std::unique_ptr<Launchable> launch(const MatmulShape& shape, const MatmulData& data) {
  const auto kernel = shape.m <= 16   ? skinny_kernel<element, 1>
                      : shape.m <= 32 ? skinny_kernel<element, 2>
                      : shape.m <= 64 ? skinny_kernel<element, 4>
                                      : skinny_kernel<element, kMostTiles>;
  const auto blocks = static_cast<unsigned>((shape.n + kColumns - 1) / kColumns);
  return std::make_unique<KernelLaunch<TensorProduct<element>>>(
      kernel, LaunchShape{{blocks, 1, static_cast<unsigned>(shape.batch)}, kThreads}, nullptr,
      tensor_product<element>(shape, data));
}

std::string why_unsupported(const MatmulShape& shape, const DeviceInfo& device) {
  const std::string few = shape.m > 16 * kMostTiles ? "rung skinny computes at most 128 rows" : "";
  const std::string whole = shape.k % 8 != 0 ? "rung skinny needs a k that is a multiple of 8" : "";
  return first_of({needs_elements(shape, "skinny", {Element::bf16, Element::fp16}),
                   why_no_tensor_product(shape, device, "skinny", 80), few, whole});
}

const MatmulRegistration registered(
    "skinny",
    {.text =
         {.step = 14,
          .changes = "for at most 128 rows: B goes from memory to the registers of mma.sync, 16 bytes per load; the "
                     "warps of a block share k",
          .reason = "memory limits: tiles of 128 rows would be mostly empty, and half as many blocks as SMs would load",
          .prediction = "90 to 95 % of the memory's rate with 16 rows",
          .design = "m=16 n=8192 k=8192 dtype=bf16"},
     .why_unsupported = why_unsupported,
     .precision = [](const MatmulShape& shape) { return tensor_precision(shape, 0); },
     .make = launched([](const MatmulShape& shape, const MatmulData& data) {
       return shape.element == Element::bf16 ? launch<Element::bf16>(shape, data) : launch<Element::fp16>(shape, data);
     })});

}  // namespace
}  // namespace feedrate::ladder::skinny
