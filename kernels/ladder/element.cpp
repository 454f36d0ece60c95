#include "kernels/ladder/matrix.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace feedrate::ladder {

const std::vector<std::string>& element_names() {
  static const std::vector<std::string> kNames{"fp32", "tf32", "bf16", "fp16", "fp8"};
  return kNames;
}
std::string text_of(Element element) { return element_names()[static_cast<std::size_t>(element)]; }
Element element_of(const std::string& name) {
  const auto& names = element_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw BadInput("--dtype", name, "fp32, tf32, bf16, fp16, fp8");
  return static_cast<Element>(found - names.begin());
}

const std::vector<std::string>& input_names() {
  static const std::vector<std::string> kNames{"normal", "positive", "whole", "zeros"};
  return kNames;
}
Inputs inputs_of(const std::string& name) {
  const auto found = std::ranges::find(input_names(), name);
  if (found == input_names().end()) throw BadInput("--inputs", name, "normal, positive, whole, zeros");
  return static_cast<Inputs>(found - input_names().begin());
}

std::string arithmetic_limit(Element element) {
  if (element == Element::fp32) return "fma_f32_operations_per_second";
  const std::string type = element == Element::fp8 ? "f8" : element == Element::fp16 ? "f16" : text_of(element);
  return "tensor_" + type + "_operations_per_second";
}

}  // namespace feedrate::ladder
