#include "kernels/matmul/cuda/tensor.cuh"
#include "kernels/tile/mma.cuh"

/// Tensor cores by warp instructions (mma.sync), on the tiles that asynchronous copies bring.
namespace feedrate::ladder::warp_tensor {
namespace {

constexpr int kRows = 128, kColumns = 128, kThreads = 256, kStages = 4;
constexpr int kDepth = 64;                        // bytes of k per tile
constexpr int kWarpRows = 64, kWarpColumns = 32;  // per warp; 2 × 4 warps
constexpr int kTile = 128 * kDepth;               // bytes
constexpr int kPiece = 16;                        // bytes

/// Byte of a piece of 16 bytes in a tile. Pieces are exchanged within rows, so that the 8 rows that ldmatrix reads at
/// once are in different banks: two rows of 64 bytes fill all banks.
__device__ int place_of(int row, int piece) { return row * kDepth + ((piece ^ row / 2 % 4) * kPiece); }

/// Starts the copy of 128 rows × kDepth bytes; what lies beyond the last row and k becomes 0.
__device__ void start_copy(std::byte* to, const tile::Operand<std::byte>& operand, int row, int k, int last_row,
                           int last_k) {
#pragma unroll
  for (int i = 0; i < kTile / kPiece / kThreads; ++i) {
    const int number = i * kThreads + static_cast<int>(threadIdx.x);
    const int in_tile = number / (kDepth / kPiece), piece = number % (kDepth / kPiece);
    const int left = last_k - (k + piece * kPiece);
    const int there = row + in_tile < last_row && left > 0 ? (left < kPiece ? left : kPiece) : 0;
    const std::byte* const from = there > 0 ? operand.at(blockIdx.z, row + in_tile, k + piece * kPiece) : operand.data;
    tile::copy_16(to + place_of(in_tile, piece), from, there);
  }
}

template <Element element>
__global__ void __launch_bounds__(kThreads, bytes_of(element) == 2 ? 2 : 1)
    warp_tensor_kernel(TensorProduct<element> product) {
  extern __shared__ __align__(128) std::byte bytes[];  // per stage: left, right
  const int row = static_cast<int>(blockIdx.y) * kRows, column = static_cast<int>(blockIdx.x) * kColumns;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int y = warp / 4 * kWarpRows, x = warp % 4 * kWarpColumns;
  const int steps = (product.k + kDepth - 1) / kDepth;
  const auto start = [&](int step) {
    std::byte* const left = bytes + step % kStages * 2 * kTile;
    if (step < steps) {
      start_copy(left, product.left, row, step * kDepth, product.m, product.k);
      start_copy(left + kTile, product.right, column, step * kDepth, product.n, product.k);
    }
    tile::end_copies();
  };
  for (int step = 0; step < kStages - 1; ++step) start(step);
  float sums[kWarpRows / 16][kWarpColumns / 8][4] = {};
  for (int step = 0; step < steps; ++step) {
    tile::await_copies<kStages - 2>();
    __syncthreads();
    start(step + kStages - 1);
    const std::byte* const left = bytes + step % kStages * 2 * kTile;
    const std::byte* const right = left + kTile;
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // 32 bytes of k are two pieces
      std::uint32_t a[kWarpRows / 16][4], b[kWarpColumns / 16][4];
      // Matrices 0 to 3 of a fragment of A: rows 0 to 7 and 8 to 15 of the first piece, then of the second one.
#pragma unroll
      for (int i = 0; i < kWarpRows / 16; ++i) {
        tile::load_matrices(a[i], left + place_of(y + i * 16 + lane % 16, half * 2 + lane / 16));
      }
      // Two fragments of B: both pieces of columns 0 to 7, then of 8 to 15.
#pragma unroll
      for (int j = 0; j < kWarpColumns / 16; ++j) {
        tile::load_matrices(b[j], right + place_of(x + j * 16 + lane / 16 * 8 + lane % 8, half * 2 + lane / 8 % 2));
      }
#pragma unroll
      for (int i = 0; i < kWarpRows / 16; ++i) {
#pragma unroll
        for (int j = 0; j < kWarpColumns / 8; ++j) {
          tile::multiply<element>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }
  tile::await_copies<0>();
#pragma unroll
  for (int i = 0; i < kWarpRows / 16; ++i) {
#pragma unroll
    for (int j = 0; j < kWarpColumns / 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float pair[2] = {sums[i][j][half * 2], sums[i][j][half * 2 + 1]};
        tile::store(product.result, blockIdx.z, row + y + i * 16 + half * 8 + lane / 4,
                    column + x + j * 8 + lane % 4 * 2, product.m, product.n, pair);
      }
    }
  }
}

/// Launches for one element type.
template <Element element>
std::unique_ptr<Launchable> launch(const MatmulShape& shape, const MatmulData& data) {
  constexpr unsigned kShared = kStages * 2 * kTile;
  return std::make_unique<KernelLaunch<TensorProduct<element>>>(
      warp_tensor_kernel<element>, LaunchShape{tiles_of(shape, kRows, kColumns), kThreads, kShared}, nullptr,
      tensor_product<element>(shape, data));
}

const MatmulRegistration registered(
    "warp_tensor",
    {.text = {.step = 8,
              .changes = "tensor cores by mma.sync, with ldmatrix and swizzled tiles; tf32, bf16, fp16 and fp8",
              .reason = "one instruction multiplies 16 x 8 x 16 elements, 2,048 multiply-adds",
              .prediction = "60 to 65 % of the tensor cores' peak on compute capability 9.0, which these instructions "
                            "cannot saturate",
              .design = "m=8192 n=8192 k=8192 dtype=bf16"},
     .why_unsupported =
         [](const MatmulShape& shape, const DeviceInfo& device) {
           return why_no_tensor_product(shape, device, "warp_tensor", 80);
         },
     .precision = [](const MatmulShape& shape) { return tensor_precision(shape, 0); },
     .make = launched([](const MatmulShape& shape, const MatmulData& data) {
       return with_element(shape.element, [&]<Element element>() { return launch<element>(shape, data); });
     })});

}  // namespace
}  // namespace feedrate::ladder::warp_tensor
