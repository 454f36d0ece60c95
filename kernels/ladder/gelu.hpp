#pragma once
#include "common/message/message.hpp"

#ifndef __CUDA_ARCH__
#include <cmath>
#endif

/// The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel 2016, arXiv 1606.08415), which cuBLASLt and
/// PyTorch's `approximate="tanh"` compute.
namespace feedrate::ladder {

inline constexpr double kGeluScale = 0.7978845608028654, kGeluCubic = 0.044715;  // sqrt(2 / pi)

template <class Real>
FEEDRATE_HD Real hyperbolic_tangent(Real x) {
#ifdef __CUDA_ARCH__
  return tanh(x);
#else
  return std::tanh(x);
#endif
}

template <class Real>
FEEDRATE_HD Real gelu(Real x) {
  const auto inner = static_cast<Real>(kGeluScale) * (x + static_cast<Real>(kGeluCubic) * x * x * x);
  return static_cast<Real>(0.5) * x * (1 + hyperbolic_tangent(inner));
}

/// The derivative of gelu().
template <class Real>
FEEDRATE_HD Real gelu_slope(Real x) {
  const auto inner = static_cast<Real>(kGeluScale) * (x + static_cast<Real>(kGeluCubic) * x * x * x);
  const Real tangent = hyperbolic_tangent(inner);
  const auto slope = static_cast<Real>(kGeluScale) * (1 + static_cast<Real>(3 * kGeluCubic) * x * x);
  return static_cast<Real>(0.5) * (1 + tangent) + static_cast<Real>(0.5) * x * (1 - tangent * tangent) * slope;
}

}  // namespace feedrate::ladder
