#include "kernels/matmul/cuda/python_matmul.hpp"

/// PyTorch's matrix product (pytorch_matmul.py).
namespace feedrate::ladder::pytorch_matmul {
namespace {

std::string why_unsupported(const MatmulShape& shape, const DeviceInfo&) {
  if (shape.element != Element::fp8) return "";
  if (shape.batch > 1) return "PyTorch multiplies fp8 without batches";
  if (shape.n % 16 != 0 || shape.k % 16 != 0) return "PyTorch multiplies fp8 with n and k that are multiples of 16";
  return first_of({needs_layouts(shape, "pytorch", {Layout::nt}), needs_alignment(shape, "pytorch", 16)});
}

const MatmulRegistration registered(
    "pytorch",
    python_matmul("pytorch_matmul", "torch",
                  "PyTorch's torch.mm and torch.bmm; for fp8 scaled_mm without fast accumulation", why_unsupported));

}  // namespace
}  // namespace feedrate::ladder::pytorch_matmul
