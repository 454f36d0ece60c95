#pragma once
#include <string>

#include "kernels/ladder/fill.hpp"

/// Checks of matrix products against sums in double precision, on the device that holds the matrices.
namespace feedrate::ladder {

/// One side of a product, as a matrix of `rows` × `depth` elements (left) or `depth` × `columns` elements (right).
struct Operand {
  Matrix matrix;
  bool transposed = false;  ///< memory holds the transposed matrix
  Matrix slope_of = {};     ///< if it has data: each element is multiplied by gelu_slope() of this matrix's element
  bool ones = false;        ///< all elements are 1, and nothing is read

  FEEDRATE_HD double load(std::uint64_t which, std::uint64_t row, std::uint64_t column) const;
  /// The magnitude by which an error of this element is judged: without the slope, which is computed with an absolute
  /// error.
  FEEDRATE_HD double magnitude(std::uint64_t which, std::uint64_t row, std::uint64_t column) const;
};

/// result = gelu(scale × left × right + bias), each part as far as it is given.
struct Product {
  Operand left, right;
  Matrix result;
  std::uint64_t depth = 0;
  const float* bias = nullptr;  ///< per column of the result
  Matrix before_gelu = {};      ///< if it has data: receives the value before gelu()
  bool gelu = false;
  float scale = 1;
  Inputs inputs = Inputs::normal;
};

/// The first wrong element, or the first row that is wrong if it is multiplied by random signs.
struct WrongProduct {
  bool row_only = false;
  std::uint64_t count = 0, of = 0;  ///< number of wrong elements or rows among those that were checked
  std::uint64_t row = 0, column = 0, which = 0;
  double found = 0, expected = 0, allowed = 0;  ///< of any of the wrong ones
};
std::string text_of(const WrongProduct&);

/// What a check found.
struct ProductVerdict {
  std::string wrong;          ///< the first error, empty if there is none
  std::uint64_t samples = 0;  ///< elements that were compared
  double error = 0;           ///< root of the mean squared error of the samples, relative to that of their values
  double share = 0;           ///< largest ratio of an error to what is allowed
};

/// How exact a rung is.
struct Precision {
  double sum = 0x1p-22;    ///< relative error of one addition
  double operand = 0;      ///< relative error of an operand's rounding before it is multiplied (tf32)
  unsigned promotion = 0;  ///< number of products after which a sum moves to fp32; 0: never
};

/// Compares `samples` elements of the result, among them its corners, with sums in double precision. An error may be at
/// most
///     8 × (sum × √depth × Σ|a||b| + operand × √Σ(ab)²) + half a unit in the last place of the result
/// (Higham and Mary 2019, "A new approach to probabilistic rounding error analysis": errors of many sums grow with the
/// root of their number). With whole-number inputs and no gelu the result must be exact. Also compares every row with a
/// product of three matrices: result × x = left × (right × x) for a vector x of random signs (Freivalds 1979), so that
/// an error in any element shows if it is about as large as the element; not with gelu.
ProductVerdict check_product(Device&, Stream&, const Product&, const Precision&, std::uint64_t samples,
                             std::uint64_t seed);

}  // namespace feedrate::ladder
