#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/matmul/cuda/fp32.cuh"

/// Parts of the rungs that use tensor cores. Their operands lie along k, and are moved as bytes.
namespace feedrate::ladder {

/// Type of the result for an element type of A and B.
template <Element element>
struct ResultOf {
  using Type = float;
};
template <>
struct ResultOf<Element::bf16> {
  using Type = __nv_bfloat16;
};
template <>
struct ResultOf<Element::fp16> {
  using Type = __half;
};
template <>
struct ResultOf<Element::fp8> {
  using Type = __nv_bfloat16;
};

/// A product whose operands are bytes: strides, and `k`, are in bytes.
template <Element element>
using TensorProduct = tile::Product<std::byte, typename ResultOf<element>::Type>;

template <Element element>
TensorProduct<element> tensor_product(const MatmulShape& shape, const MatmulData& data) {
  using Out = typename ResultOf<element>::Type;
  const auto bytes = [](const Matrix& matrix) {
    const auto size = static_cast<std::int64_t>(bytes_of(matrix.element));
    return tile::Operand<std::byte>{matrix.data, static_cast<std::int64_t>(matrix.stride) * size,
                                    static_cast<std::int64_t>(matrix.rows * matrix.stride) * size, true, true};
  };
  return {bytes(data.left),
          bytes(data.right),
          tile::result_of<Out>(data.result, data.bias, shape.scale, shape.epilogue == Epilogue::bias_gelu,
                               data.before_gelu.data),
          static_cast<int>(shape.m),
          static_cast<int>(shape.n),
          static_cast<int>(shape.k * bytes_of(element))};
}

/// Calls `use.template operator()<element>()` for an element type of tensor cores.
template <class Use>
auto with_element(Element element, const Use& use) {
  switch (element) {
    case Element::bf16:
      return use.template operator()<Element::bf16>();
    case Element::fp16:
      return use.template operator()<Element::fp16>();
    case Element::fp8:
      return use.template operator()<Element::fp8>();
    default:
      return use.template operator()<Element::tf32>();
  }
}

/// How exact sums of tensor cores are. Their additions cut off bits instead of rounding; those of 8-bit floats on
/// compute capability 9.0 keep about 14 bits (DeepSeek-V3, 2024, arXiv 2412.19437, section 3.3.2). `promotion`: number
/// of products after which sums of fp8 are added in fp32.
inline Precision tensor_precision(const MatmulShape& shape, unsigned promotion) {
  if (shape.element == Element::tf32) return {.sum = 0x1p-22, .operand = 0x1p-10};
  if (shape.element == Element::fp8) return {.sum = 0x1p-13, .promotion = promotion};
  return {.sum = 0x1p-22};
}

/// Why a rung of tensor cores does not compute a product; empty if it does. `least`: the compute capability that it
/// needs, 80 or 90.
inline std::string why_no_tensor_product(const MatmulShape& shape, const DeviceInfo& device, const std::string& name,
                                         unsigned least, bool all_layouts = false) {
  const bool fits = least == 90 ? device.capability == 90 : device.capability >= least;
  std::string capability;
  if (!fits) {
    capability = "rung " + name + " needs a GPU of compute capability " + (least == 90 ? "9.0" : "8.0 or more");
  }
  if (shape.element == Element::fp8 && device.capability != 90) capability = "fp8 needs compute capability 9.0 here";
  return first_of({capability, needs_elements(shape, name, {Element::tf32, Element::bf16, Element::fp16, Element::fp8}),
                   all_layouts ? "" : needs_layouts(shape, name, {Layout::nt}), needs_alignment(shape, name, 16)});
}

}  // namespace feedrate::ladder
