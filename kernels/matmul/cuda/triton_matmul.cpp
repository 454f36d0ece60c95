#include <fmt/format.h>

#include "kernels/matmul/cuda/python_matmul.hpp"

/// A kernel in Triton with tensor descriptors, in the fastest of several configurations (triton_matmul.py).
namespace feedrate::ladder::triton_matmul {
namespace {

std::string why_unsupported(const MatmulShape& shape, const DeviceInfo& device) {
  if (shape.element == Element::fp32) return "--dtype fp32: the kernel in Triton is for tensor cores; choose tf32";
  if (shape.batch > 1) return fmt::format("--batch {}: the kernel in Triton computes 1", shape.batch);
  if (device.capability < 90) return "the kernel in Triton uses TMA, which needs compute capability 9.0";
  if (shape.element == Element::fp8 && shape.layout != Layout::nt) {
    return needs_layouts(shape, "triton", {Layout::nt});
  }
  return needs_alignment(shape, "triton", 16);
}

const MatmulRegistration registered("triton", python_matmul("triton_matmul", "triton",
                                                            "a kernel in Triton, in the fastest of its configurations",
                                                            why_unsupported));

}  // namespace
}  // namespace feedrate::ladder::triton_matmul
