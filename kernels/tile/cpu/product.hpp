#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/ladder/gelu.hpp"
#include "kernels/launch.cuh"

/// Parts that the CPU's rungs share: products of fp32 matrices with any strides.
namespace feedrate::tile {

/// c = gelu(scale × a × b + bias), each part as far as it is given. Strides are in elements.
struct CpuProduct {
  const float* a;
  std::ptrdiff_t a_row, a_k;
  const float* b;
  std::ptrdiff_t b_k, b_column;
  float* c;
  std::ptrdiff_t c_row;
  std::ptrdiff_t m, n, k;
  const float* bias = nullptr;   ///< per column
  float* before_gelu = nullptr;  ///< like c; receives the values before gelu
  bool gelu = false;
  float scale = 1;

  float left(std::ptrdiff_t row, std::ptrdiff_t at) const { return a[row * a_row + at * a_k]; }
  float right(std::ptrdiff_t at, std::ptrdiff_t column) const { return b[at * b_k + column * b_column]; }
  /// Stores an element of c from its sum of products.
  void finish(std::ptrdiff_t row, std::ptrdiff_t column, float sum) const {
    float value = scale * sum + (bias != nullptr ? bias[column] : 0);
    if (before_gelu != nullptr) before_gelu[row * c_row + column] = value;
    c[row * c_row + column] = gelu ? ladder::gelu(value) : value;
  }
};

/// A launch that only the CPU device runs.
inline KernelLaunch<> cpu_launch(std::function<void()> work) { return {nullptr, {}, std::move(work)}; }

}  // namespace feedrate::tile
