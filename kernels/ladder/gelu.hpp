#pragma once
#include "common/message/message.hpp"

#ifndef __CUDA_ARCH__
#include <cmath>
#endif

/// The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel 2016, arXiv 1606.08415), which cuBLASLt and
/// PyTorch's `approximate="tanh"` compute.
namespace feedrate::ladder {

inline constexpr double kGeluScale = 0.7978845608028654, kGeluCubic = 0.044715;  // sqrt(2 / pi)

/// 1 / (1 + exp(-x)). On the GPU by the fast instructions for fp32, whose error is a few units in the last place.
template <class Real>
FEEDRATE_HD Real logistic(Real x) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Real) == sizeof(float)) return __fdividef(1, 1 + __expf(-x));
  return 1 / (1 + exp(-x));
#else
  return 1 / (1 + std::exp(-x));
#endif
}

/// x / 2 × (1 + tanh(y)) with the inner polynomial y, as x × logistic(2 y), which is the same.
template <class Real>
FEEDRATE_HD Real gelu(Real x) {
  const auto cubic = static_cast<Real>(kGeluCubic), scale = static_cast<Real>(2 * kGeluScale);
  return x * logistic(scale * (x + cubic * x * x * x));
}

/// The derivative of gelu().
template <class Real>
FEEDRATE_HD Real gelu_slope(Real x) {
  const auto cubic = static_cast<Real>(kGeluCubic), scale = static_cast<Real>(2 * kGeluScale);
  const Real part = logistic(scale * (x + cubic * x * x * x));
  return part + x * part * (1 - part) * scale * (1 + 3 * cubic * x * x);
}

}  // namespace feedrate::ladder
