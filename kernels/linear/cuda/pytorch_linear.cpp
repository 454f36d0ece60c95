#include <fmt/format.h>

#include "common/device/cuda_stream.hpp"
#include "kernels/ladder/python_peer.hpp"
#include "kernels/linear/linear.hpp"

/// PyTorch's eager mode (pytorch_linear.py).
namespace feedrate::ladder::pytorch_linear {
namespace {

std::string passes_of(const LinearShape& shape) {
  std::string list;
  for (const Pass pass : {Pass::forward, Pass::backward_input, Pass::backward_weight, Pass::backward_bias}) {
    if (shape.computes(pass)) list += "'" + text_of(pass) + "', ";
  }
  return "[" + list + "]";
}

class PyTorchLinear final : public Linear {
 public:
  explicit PyTorchLinear(const LinearShape& shape) : peer_("pytorch_linear", passes_of(shape)) {}
  void queue(Stream& stream, const LinearData& data) override {
    std::string arguments = std::to_string(reinterpret_cast<std::uintptr_t>(dynamic_cast<CudaStream&>(stream).get()));
    for (const Matrix* each : {&data.x, &data.weight, &data.bias, &data.gradient_y, &data.before_gelu, &data.y,
                               &data.gradient_x, &data.gradient_weight, &data.gradient_bias, &data.slope}) {
      arguments += ", " + python_text(*each);
    }
    peer_.call("queue", arguments);
  }
  std::map<std::string, std::string> chosen() const override { return peer_.chosen(); }

 private:
  PythonPeer peer_;
};

const LinearRegistration registered(
    "pytorch",
    {.text = {.changes = "PyTorch's eager mode: the operators that autograd runs for linear and gelu"},
     .unavailable = [] { return PythonPeer::missing("torch"); },
     .why_unsupported = [](const LinearShape& shape, const DeviceInfo&) -> std::string {
       if (!shape.gelu) return "--activation none: the peer pytorch computes gelu";
       return shape.element == Element::fp8 ? "--dtype fp8: the peer pytorch does not compute with it" : "";
     },
     .precision =
         [](const LinearShape& shape) {
           // The bias and the value before GELU are rounded to the layer's type.
           const bool small = bytes_of(shape.element) == 2;
           return Precision{.sum = 0x1p-22, .operand = small ? 0x1p-8 : shape.element == Element::tf32 ? 0x1p-10 : 0};
         },
     .make = [](const LinearShape& shape, Device&) -> std::unique_ptr<Linear> {
       return std::make_unique<PyTorchLinear>(shape);
     }});

}  // namespace
}  // namespace feedrate::ladder::pytorch_linear
