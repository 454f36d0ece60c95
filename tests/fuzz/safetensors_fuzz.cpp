// libFuzzer target; tests/fuzz/run.sh builds and runs it. A header is rejected, or its tensors fill the file without gaps.
#include <cstdlib>
#include <sstream>

#include "common/error.hpp"
#include "libraries/tensors/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace feedrate;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    std::istringstream file(bytes);
    const tensors::Safetensors found = tensors::read_safetensors(file, size);
    std::uint64_t end = found.tensors.empty() ? size : found.tensors.front().start;
    for (const tensors::StoredTensor& tensor : found.tensors) {
      if (tensor.start != end || tensor.bytes != tensors::bytes_of(tensor.layout)) std::abort();
      end += tensor.bytes;
    }
    if (end != size) std::abort();
  } catch (const BadInput&) {
  }
  try {
    std::istringstream file(bytes);
    for (const auto& [tensor, name] : tensors::read_safetensors_index(file)) {
      if (name.empty() || name.find('/') != name.npos) std::abort();
    }
  } catch (const BadInput&) {
  }
  return 0;
}
