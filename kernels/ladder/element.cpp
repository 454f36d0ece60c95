#include "kernels/ladder/element.hpp"

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

}  // namespace feedrate::ladder
