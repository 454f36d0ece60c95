#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "common/export.hpp"
#include "libraries/tensors/tensor.hpp"

namespace feedrate::tensors {

/// A tensor in a file.
struct StoredTensor {
  std::string name;
  Layout layout;            ///< row-major
  std::uint64_t start = 0;  ///< byte of the file at which its elements begin
  std::uint64_t bytes = 0;
};

/// The header of a .safetensors file (github.com/huggingface/safetensors).
struct Safetensors {
  std::vector<StoredTensor> tensors;            ///< in the order of their elements
  std::map<std::string, std::string> metadata;  ///< of the producer
};

/// Reads a header and checks all of it: names are unique, and the elements of all tensors fill the rest of the file
/// without gaps or overlaps, as the format demands. So a truncated or damaged file is rejected before any element is
/// read. `file_bytes`: size of the file. Throws BadInput that describes the error.
FEEDRATE_EXPORT Safetensors read_safetensors(std::istream& file, std::uint64_t file_bytes);

/// The names of the files that hold the tensors of a checkpoint in parts, by tensor: the `weight_map` of an index
/// (model.safetensors.index.json). Throws BadInput, also for a file name that is a path.
FEEDRATE_EXPORT std::map<std::string, std::string> read_safetensors_index(std::istream& file);

}  // namespace feedrate::tensors
