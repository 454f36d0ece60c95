#pragma once
#include <functional>
#include <memory>
#include <string>

#include "kernels/ladder/ladder.hpp"

/// The ladder of linear layers: y = gelu(x × Wᵀ + b) for `rows` inputs, with the value before gelu kept for the
/// backward pass, and the gradients of x, W and b.
namespace feedrate::ladder {

/// What is computed. `all`: a step of training, forward and then everything backward.
enum class Pass : std::uint8_t { forward, backward_input, backward_weight, backward_bias, all };
std::string text_of(Pass);

struct LinearShape {
  std::uint64_t rows = 0, in = 0, out = 0;
  Element element = Element::fp32;  ///< of everything but the bias and its gradient, which are fp32
  bool gelu = true;
  Pass pass = Pass::forward;

  bool computes(Pass part) const { return pass == part || pass == Pass::all; }
  bool computes_backward() const { return pass != Pass::forward; }
  Matrix x() const { return {nullptr, element, rows, in, in}; }
  Matrix weight() const { return {nullptr, element, out, in, in}; }
  Matrix y() const {
    return {nullptr, element, rows, out, out};
  }  ///< also the value before gelu, and gradients of both
  static constexpr std::uint64_t kParts = 128;
  Matrix partial() const { return {nullptr, Element::fp32, kParts, out, out}; }
  Matrix bias() const { return {nullptr, Element::fp32, 1, out, out}; }
};

/// The matrices of one layer. Backward passes read `before_gelu`, which the forward pass writes. `slope` is memory for
/// the gradient of the value before gelu, and `partial` memory for sums of parts of the rows; rungs that need them
/// write them.
struct LinearData {
  Matrix x, weight, bias, gradient_y;
  Matrix before_gelu, y, gradient_x, gradient_weight, gradient_bias, slope, partial;
};

/// Prepared for one shape.
class Linear {
 public:
  virtual ~Linear() = default;
  virtual void queue(Stream&, const LinearData&) = 0;
  virtual std::map<std::string, std::string> chosen() const { return {}; }
};

struct LinearRung {
  RungText text;
  std::function<std::string()> unavailable = [] { return std::string(); };
  std::function<std::string(const LinearShape&, const DeviceInfo&)> why_unsupported;
  std::function<Precision(const LinearShape&)> precision = [](const LinearShape& shape) {
    return shape.element == Element::fp32 ? Precision{.sum = 0x1p-24} : Precision{};
  };
  std::function<std::unique_ptr<Linear>(const LinearShape&, Device&)> make;
};
using LinearRungs = Registry<LinearRung>;
using LinearRegistration = Registration<LinearRung>;

}  // namespace feedrate::ladder
