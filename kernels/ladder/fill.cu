#include "kernels/ladder/fill.hpp"

#include "kernels/ladder/spread.cuh"

namespace feedrate::ladder {
namespace {

struct Fill {
  Matrix matrix;
  Inputs inputs;
  std::uint64_t seed;
  FEEDRATE_HD std::uint64_t count() const { return matrix.batch * matrix.rows * matrix.columns; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    const std::uint64_t row = i / matrix.columns, column = i % matrix.columns;
    store_element(matrix.at(0, row, column), matrix.element, input_at(inputs, seed, i));
  }
};

struct CountDifferent {
  Matrix matrix;
  Inputs inputs;
  std::uint64_t seed;
  std::uint64_t* changed;
  FEEDRATE_HD std::uint64_t count() const { return matrix.batch * matrix.rows * matrix.columns; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    std::byte expected[4];
    store_element(expected, matrix.element, input_at(inputs, seed, i));
    const std::byte* const found = matrix.at(0, i / matrix.columns, i % matrix.columns);
    for (unsigned byte = 0; byte < bytes_of(matrix.element); ++byte) {
      if (found[byte] != expected[byte]) return add_to(*changed, 1);
    }
  }
};

struct CountChanged {
  const std::byte* memory;
  std::uint64_t bytes, first;  // `first`: byte where the matrix begins
  Matrix matrix;
  std::uint64_t* changed;
  FEEDRATE_HD std::uint64_t count() const { return bytes; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    if (memory[i] == static_cast<std::byte>(kNanByte)) return;
    if (i >= first && i - first < matrix.bytes() &&
        (i - first) / bytes_of(matrix.element) % matrix.stride < matrix.columns) {
      return;
    }
    add_to(*changed, 1);
  }
};

}  // namespace

void fill(Stream& stream, const Matrix& matrix, Inputs inputs, std::uint64_t seed) {
  stream.launch(spread(Fill{matrix, inputs, seed}));
}

void count_different(Stream& stream, const Matrix& matrix, Inputs inputs, std::uint64_t seed, std::uint64_t* changed) {
  stream.launch(spread(CountDifferent{matrix, inputs, seed, changed}));
}

void count_changed(Stream& stream, const MatrixMemory& memory, std::uint64_t* changed) {
  const auto first = static_cast<std::uint64_t>(memory.matrix().data - memory.memory().data());
  stream.launch(spread(CountChanged{memory.memory().data(), memory.memory().size(), first, memory.matrix(), changed}));
}

}  // namespace feedrate::ladder
