#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "libraries/tensors/tensor.hpp"

namespace feedrate {

/// Header of a NumPy file (numpy.lib.format, versions 1.0 to 3.0) whose elements have this machine's byte order.
/// NumPy has no names for bf16, e4m3 and e5m2; they are written as ml_dtypes writes them: |V2 and |V1.
struct NpyHeader {
  tensors::Layout layout;   ///< Fortran order is expressed by strides
  std::size_t data_at = 0;  ///< byte offset of the elements
};

/// Reads only the header, so the stream continues with the elements, even if it is a pipe. Throws BadInput that
/// describes the error. `dtype` is the element type if the file does not specify it; if `dtype` is empty, the file
/// must specify the type.
NpyHeader read_npy_header(std::istream& file, const std::string& dtype);
/// Returns the file header for an array in row-major order.
std::string npy_header(tensors::Dtype, const std::vector<std::int64_t>& shape);

}  // namespace feedrate
