#include "kernels/tile/tensor_map.hpp"

#include <algorithm>
#include <string>

#include "common/device/cuda_check.hpp"
#include "common/error.hpp"

namespace feedrate::tile {
namespace {

CUtensorMapDataType type_of(ladder::Element element) {
  switch (element) {
    case ladder::Element::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case ladder::Element::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case ladder::Element::fp8:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

auto encode_tiled() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found),
        "looking up cuTensorMapEncodeTiled");
  if (found != cudaDriverEntryPointSuccess) throw Failure("this driver has no cuTensorMapEncodeTiled");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
}

}  // namespace

CUtensorMap tensor_map(const ladder::Matrix& matrix, unsigned rows, Fetch fetch) {
  static const auto encode = encode_tiled();
  const std::uint64_t size = bytes_of(matrix.element);
  const std::uint64_t sizes[] = {std::max<std::uint64_t>(1, matrix.columns), std::max<std::uint64_t>(1, matrix.rows),
                                 matrix.batch};
  const std::uint64_t row_bytes = std::max<std::uint64_t>(16, matrix.stride * size);
  const std::uint64_t strides[] = {row_bytes, row_bytes * sizes[1]};
  const unsigned box[] = {static_cast<unsigned>(kBoxRow / size), rows, 1}, steps[] = {1, 1, 1};
  CUtensorMap map{};
  const CUresult result =
      encode(&map, type_of(matrix.element), 3, matrix.data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B,
             fetch == Fetch::bytes_256 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) throw Failure("cuTensorMapEncodeTiled: error " + std::to_string(result));
  return map;
}

}  // namespace feedrate::tile
