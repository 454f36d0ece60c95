#include "kernels/matmul/cpu/cpu_products.hpp"

namespace feedrate::ladder {

std::string why_no_cpu_product(const MatmulShape& shape) {
  return shape.element == Element::fp32 ? "" : "the CPU's rungs multiply fp32, not " + text_of(shape.element);
}

void for_each_product(const MatmulShape& shape, const MatmulData& data,
                      const std::function<void(const tile::CpuProduct&)>& multiply) {
  const auto stride = [](const Matrix& matrix) { return static_cast<std::ptrdiff_t>(matrix.stride); };
  const bool left_turned = left_is_transposed(shape.layout), right_turned = right_is_transposed(shape.layout);
  for (std::uint64_t which = 0; which < shape.batch; ++which) {
    multiply({.a = reinterpret_cast<const float*>(data.left.at(which, 0, 0)),
              .a_row = left_turned ? 1 : stride(data.left),
              .a_k = left_turned ? stride(data.left) : 1,
              .b = reinterpret_cast<const float*>(data.right.at(which, 0, 0)),
              .b_k = right_turned ? 1 : stride(data.right),
              .b_column = right_turned ? stride(data.right) : 1,
              .c = reinterpret_cast<float*>(data.result.at(which, 0, 0)),
              .c_row = stride(data.result),
              .m = static_cast<std::ptrdiff_t>(shape.m),
              .n = static_cast<std::ptrdiff_t>(shape.n),
              .k = static_cast<std::ptrdiff_t>(shape.k),
              .bias = data.bias,
              .before_gelu = data.before_gelu.data == nullptr
                                 ? nullptr
                                 : reinterpret_cast<float*>(data.before_gelu.at(which, 0, 0)),
              .gelu = shape.epilogue == Epilogue::bias_gelu,
              .scale = shape.scale});
  }
}

MatmulRung cpu_rung(RungText text, std::function<void(const tile::CpuProduct&)> multiply) {
  text.device = "cpu";
  return {.text = std::move(text),
          .why_unsupported = [](const MatmulShape& shape, const DeviceInfo&) { return why_no_cpu_product(shape); },
          .make = launched([multiply = std::move(multiply)](const MatmulShape& shape, const MatmulData& data) {
            return tile::cpu_launch([=] { for_each_product(shape, data, multiply); });
          })};
}

}  // namespace feedrate::ladder
