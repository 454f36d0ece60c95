#pragma once
#include "kernels/linear/parts.hpp"
#include "kernels/matmul/matmul.hpp"

namespace feedrate::ladder {

/// The choices of a rung that computes a layer by rungs of the ladder matmul and by parts.
struct LinearParts {
  std::string forward = {};    ///< matmul rung of x × Wᵀ
  bool fuses_epilogue = true;  ///< bias, gelu and the value before it in the product's epilogue
  std::string input = {};      ///< matmul rung of slope × W
  std::string weight = {};     ///< matmul rung of slopeᵀ × x
  using Step = void (*)(Stream&, const LinearShape&, const LinearData&);
  Step weight_by = nullptr;                  ///< the gradient of the weight, if not by a matmul rung
  unsigned weight_splits = 1;                ///< parts of the rows whose products are added afterwards, in order
  Step slope = write_slope, bias = nullptr;  ///< `bias`: gradient of the bias, from the slope
  Step slope_and_bias = nullptr;             ///< both in one, if the pass needs both
};

/// A rung from parts. Its products are those of the named matmul rungs.
LinearRung rung_of_parts(const std::string& name, RungText, const LinearParts&, std::vector<Element> elements);

}  // namespace feedrate::ladder
