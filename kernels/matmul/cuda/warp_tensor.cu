#include "kernels/matmul/cuda/tensor.cuh"
#include "kernels/tile/mma.cuh"

/// Tensor cores by warp instructions (mma.sync), on the tiles that asynchronous copies bring.
namespace feedrate::ladder::warp_tensor {
namespace {

constexpr int kRows = 128, kColumns = 128, kThreads = 256, kStages = 3;
constexpr int kDepth = 128;                       // bytes of k per tile
constexpr int kWarpRows = 64, kWarpColumns = 32;  // per warp; 2 × 4 warps
constexpr int kTile = 128 * kDepth;               // bytes
constexpr int kPiece = 16;                        // bytes; pieces are exchanged within rows, so that the 8 rows that
                                                  // ldmatrix reads at once are in different banks: piece ^ row % 8

/// This thread's share of the copies of one operand's tiles: the same piece of every 32nd row.
class Copies {
  static constexpr int kCount = kTile / kPiece / kThreads, kRowsApart = 128 / kCount;

 public:
  __device__ Copies(const tile::Operand<std::byte>& operand, int row, int last_row, int last_k) {
    const int first = static_cast<int>(threadIdx.x) / (kDepth / kPiece);
    const int piece = static_cast<int>(threadIdx.x) % (kDepth / kPiece);
    place_ = first * kDepth + (piece ^ first % 8) * kPiece;
    rows_ = last_row - row - first;
    bytes_ = last_k - piece * kPiece;
    next_ = operand.at(blockIdx.z, row + first, piece * kPiece);
    apart_ = operand.stride * kRowsApart;
  }
  /// Starts the copies of the next tile; what lies beyond the last row and k becomes 0.
  __device__ void start(std::byte* tile) {
    const int there = bytes_ < 0 ? 0 : bytes_ < kPiece ? bytes_ : kPiece;
    const std::byte* from = next_;
#pragma unroll
    for (int i = 0; i < kCount; ++i, from += apart_) {
      const bool exists = i * kRowsApart < rows_;
      tile::copy_16(tile + place_ + i * kRowsApart * kDepth, exists ? from : next_, exists ? there : 0);
    }
    next_ += kDepth;
    bytes_ -= kDepth;
  }

 private:
  const std::byte* next_;
  std::int64_t apart_;
  int place_, rows_, bytes_;
};

template <Element element>
__global__ void __launch_bounds__(kThreads, bytes_of(element) == 2 ? 2 : 1)
    warp_tensor_kernel(const __grid_constant__ TensorProduct<element> product) {
  extern __shared__ __align__(128) std::byte bytes[];  // per stage: left, right
  const int row = static_cast<int>(blockIdx.y) * kRows, column = static_cast<int>(blockIdx.x) * kColumns;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int y = warp / 4 * kWarpRows, x = warp % 4 * kWarpColumns;
  const int steps = (product.k + kDepth - 1) / kDepth;
  Copies lefts(product.left, row, product.m, product.k), rights(product.right, column, product.n, product.k);
  const auto start = [&](int step) {
    std::byte* const left = bytes + step % kStages * 2 * kTile;
    if (step < steps) {
      lefts.start(left);
      rights.start(left + kTile);
    }
    tile::end_copies();
  };
  // Matrices 0 to 3 of a fragment of A: rows 0 to 7 and 8 to 15 of the first piece, then of the second one. Two
  // fragments of B: both pieces of columns 0 to 7, then of 8 to 15. A fragment is two pieces deep.
  const int left_at = (y + lane % 16) * kDepth, left_piece = (lane / 16 ^ lane % 8) * kPiece;
  const int right_at = (x + lane / 16 * 8 + lane % 8) * kDepth, right_piece = (lane / 8 % 2 ^ lane % 8) * kPiece;
  for (int step = 0; step < kStages - 1; ++step) start(step);
  float sums[kWarpRows / 16][kWarpColumns / 8][4] = {};
  for (int step = 0; step < steps; ++step) {
    tile::await_copies<kStages - 2>();
    __syncthreads();
    start(step + kStages - 1);
    const std::byte* const left = bytes + step % kStages * 2 * kTile;
    const std::byte* const right = left + kTile;
    constexpr int kUnrolled = element == Element::fp8 ? 1 : 4;  // fp8 becomes fp16 first, in many registers
#pragma unroll kUnrolled
    for (int k = 0; k < kDepth; k += 2 * kPiece) {
      std::uint32_t a[kWarpRows / 16][4], b[kWarpColumns / 16][4];
#pragma unroll
      for (int i = 0; i < kWarpRows / 16; ++i) {
        tile::load_matrices(a[i], left + left_at + (left_piece ^ k) + i * 16 * kDepth);
      }
#pragma unroll
      for (int j = 0; j < kWarpColumns / 16; ++j) {
        tile::load_matrices(b[j], right + right_at + (right_piece ^ k) + j * 16 * kDepth);
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
              .measured = "H200, matmul bf16, 8192 × 8192 × 8192, layout nt: 294 T/s, 0.413 of the best library",
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
