#include <fmt/format.h>

#include "kernels/matmul/cuda/python_matmul.hpp"

/// PyTorch's matrix product (pytorch_matmul.py).
namespace feedrate::ladder::pytorch_matmul {
namespace {

std::string why_unsupported(const MatmulShape& shape, const DeviceInfo&) {
  if (shape.element != Element::fp8) return "";
  if (shape.batch > 1) return fmt::format("--batch {}: PyTorch multiplies fp8 with --batch 1", shape.batch);
  if (shape.n % 16 != 0 || shape.k % 16 != 0) {
    return fmt::format("--n {} --k {}: PyTorch multiplies fp8 with multiples of 16", shape.n, shape.k);
  }
  return first_of({needs_layouts(shape, "pytorch", {Layout::nt}), needs_alignment(shape, "pytorch", 16)});
}

const MatmulRegistration registered(
    "pytorch",
    python_matmul("pytorch_matmul", "torch",
                  "PyTorch's torch.mm and torch.bmm; for fp8 scaled_mm without fast accumulation", why_unsupported));

}  // namespace
}  // namespace feedrate::ladder::pytorch_matmul
