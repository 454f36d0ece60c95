#pragma once
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "libraries/tensors/tensor.hpp"

namespace feedrate {

/// An array as NumPy's files have it (numpy.lib.format, versions 1.0 to 3.0), of elements in this machine's byte order.
/// bf16, e4m3 and e5m2, which NumPy has no names for, are written as ml_dtypes has them: |V2 and |V1.
struct NpyHeader {
  tensors::Layout layout;   ///< Fortran's order has strides
  std::size_t data_at = 0;  ///< bytes in front of the elements
};

/// Throws BadInput that says what of `bytes`, which begin a file, is wrong. `dtype`: what the elements are, where the
/// file does not say; empty: it must.
NpyHeader read_npy_header(std::span<const std::byte> bytes, const std::string& dtype);
/// The same from a stream. It reads only the header, so the stream continues with the elements, also if it is a pipe.
NpyHeader read_npy_header(std::istream& file, const std::string& dtype);
/// What a file of an array begins with, whose elements lie row by row.
std::string npy_header(tensors::Dtype, const std::vector<std::int64_t>& shape);

}  // namespace feedrate
