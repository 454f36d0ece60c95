#pragma once
#include "kernels/launch.cuh"
#include "kernels/matmul/matmul.hpp"
#include "kernels/tile/product.cuh"

/// Parts of the rungs that multiply fp32 without tensor cores.
namespace feedrate::ladder {

using Fp32Product = tile::Product<float, float>;

inline Fp32Product fp32_product(const MatmulShape& shape, const MatmulData& data) {
  return {tile::operand_of<float>(data.left, !left_is_transposed(shape.layout)),
          tile::operand_of<float>(data.right, right_is_transposed(shape.layout)),
          tile::result_of<float>(data.result, data.bias, shape.scale, shape.epilogue == Epilogue::bias_gelu,
                                 data.before_gelu.data),
          static_cast<int>(shape.m),
          static_cast<int>(shape.n),
          static_cast<int>(shape.k)};
}

/// Blocks of threads for tiles of the result; the x dimension runs along its columns.
inline Extent tiles_of(const MatmulShape& shape, unsigned tile_rows, unsigned tile_columns) {
  return {static_cast<unsigned>((shape.n + tile_columns - 1) / tile_columns),
          static_cast<unsigned>((shape.m + tile_rows - 1) / tile_rows), static_cast<unsigned>(shape.batch)};
}

/// A rung for fp32 with launches from `launch(shape, data)`.
template <class Launch>
MatmulRung fp32_rung(const std::string& name, RungText text, Launch launch,
                     std::vector<Layout> layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt}) {
  return {.text = std::move(text),
          .why_unsupported =
              [name, layouts](const MatmulShape& shape, const DeviceInfo&) {
                return first_of({needs_elements(shape, name, {Element::fp32}), needs_layouts(shape, name, layouts)});
              },
          .make = launched(std::move(launch))};
}

/// Calls `use.template operator()<left_along, right_along>()` for the layout.
template <class Use>
auto with_layout(Layout layout, const Use& use) {
  switch (layout) {
    case Layout::nn:
      return use.template operator()<true, false>();
    case Layout::nt:
      return use.template operator()<true, true>();
    case Layout::tn:
      return use.template operator()<false, false>();
    default:
      return use.template operator()<false, true>();
  }
}

}  // namespace feedrate::ladder
