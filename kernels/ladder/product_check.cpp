#include "kernels/ladder/product_check.hpp"

#include <fmt/format.h>

namespace feedrate::ladder {

std::string text_of(const WrongProduct& wrong) {
  if (wrong.row_only) {
    return fmt::format(
        "{} of {} rows are wrong, the first in row {} of matrix {}: multiplied by random signs, one of them sums to "
        "{:.9g} instead of {:.9g} ± {:.2g}",
        wrong.count, wrong.of, wrong.row, wrong.which, wrong.found, wrong.expected, wrong.allowed);
  }
  return fmt::format(
      "{} of {} sampled elements are wrong, the first in row {}, column {} of matrix {}; one of them is {:.9g} instead "
      "of {:.9g} ± {:.2g}",
      wrong.count, wrong.of, wrong.row, wrong.column, wrong.which, wrong.found, wrong.expected, wrong.allowed);
}

}  // namespace feedrate::ladder
