#include "kernels/ladder/product_check.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/ladder/gelu.hpp"
#include "kernels/ladder/spread.cuh"

namespace feedrate::ladder {

FEEDRATE_HD double Operand::load(std::uint64_t which, std::uint64_t row, std::uint64_t column) const {
  if (ones) return 1;
  if (transposed) {
    const std::uint64_t kept = row;
    row = column;
    column = kept;
  }
  const double value = matrix.load(which, row, column);
  return slope_of.data == nullptr ? value : value * gelu_slope<double>(slope_of.load(which, row, column));
}

FEEDRATE_HD double Operand::magnitude(std::uint64_t which, std::uint64_t row, std::uint64_t column) const {
  if (ones) return 1;
  const double value = transposed ? matrix.load(which, column, row) : matrix.load(which, row, column);
  return value < 0 ? -value : value;
}

namespace {

constexpr double kMargin = 8;

struct Tally {
  std::uint64_t wrong, first;  // `first`: lowest number of a wrong sample or row
  std::uint64_t share_in_1e9;  // largest ratio of an error to what is allowed
  double squared_error, squared_value;
  double found, expected, allowed;  // of the first wrong one that was seen
};

FEEDRATE_HD double absolute(double x) { return x < 0 ? -x : x; }
FEEDRATE_HD double root(double x) {
#ifdef __CUDA_ARCH__
  return sqrt(x);
#else
  return std::sqrt(x);
#endif
}
FEEDRATE_HD void add_real(double& sum, double value) {
#ifdef __CUDA_ARCH__
  atomicAdd(&sum, value);
#else
  sum += value;
#endif
}
FEEDRATE_HD void raise_to(std::uint64_t& word, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  atomicMax(reinterpret_cast<unsigned long long*>(&word), static_cast<unsigned long long>(value));
#else
  word = value > word ? value : word;
#endif
}

/// Relative size of half a unit in the last place.
FEEDRATE_HD double rounding_of(Element element) {
  return element == Element::bf16   ? 0x1p-8
         : element == Element::fp16 ? 0x1p-11
         : element == Element::fp8  ? 0x1p-4
                                    : 0x1p-24;
}
/// The smallest difference that rounding to an element can make.
FEEDRATE_HD double least_step(Element element) {
  return element == Element::fp16 ? 0x1p-24 : element == Element::fp8 ? 0x1p-9 : 0x1p-126;
}
FEEDRATE_HD double rounded(double value, Element element) {
  std::byte bytes[4];
  store_element(bytes, element, static_cast<float>(value));
  return load_element(bytes, element);
}

FEEDRATE_HD void judge(Tally& tally, std::uint64_t number, double found, double expected, double allowed) {
  const double error = absolute(found - expected);
  const bool good = error <= allowed;  // false for NaN
  if (good && allowed > 0) raise_to(tally.share_in_1e9, static_cast<std::uint64_t>(1e9 * error / allowed));
  if (good) return;
  add_to(tally.wrong, 1);
  lower_to(tally.first, number);
  tally.found = found, tally.expected = expected, tally.allowed = allowed;  // any of the wrong ones
}

/// Place of a sample: the corners first, then random places.
struct Place {
  std::uint64_t which, row, column;
};
FEEDRATE_HD Place place_of(const Matrix& result, std::uint64_t sample, std::uint64_t seed) {
  const std::uint64_t random = mix64(seed ^ mix64(sample)), more = mix64(random);
  Place place{more % result.batch, random % result.rows, (random >> 32) % result.columns};
  if (sample < 8) {
    place.row = sample & 1 ? result.rows - 1 : 0;
    place.column = sample & 2 ? result.columns - 1 : 0;
    place.which = sample & 4 ? result.batch - 1 : 0;
  }
  return place;
}

struct CheckSamples {
  Product product;
  Precision precision;
  std::uint64_t samples, seed;
  Tally* tally;

  FEEDRATE_HD std::uint64_t count() const { return samples; }
  FEEDRATE_HD void operator()(std::uint64_t sample) const {
    const Place at = place_of(product.result, sample, seed);
    double sum = 0, magnitude = 0, squares = 0;
    for (std::uint64_t k = 0; k < product.depth; ++k) {
      sum += product.left.load(at.which, at.row, k) * product.right.load(at.which, k, at.column);
      const double size = product.left.magnitude(at.which, at.row, k) * product.right.magnitude(at.which, k, at.column);
      magnitude += size;
      squares += size * size;
    }
    const double scale = absolute(product.scale), depth = static_cast<double>(product.depth);
    double value = sum * product.scale;
    if (product.bias != nullptr) value += product.bias[at.column];
    double sums = precision.sum * root(depth);
    if (precision.promotion != 0 && precision.promotion < depth) {
      // Errors within each promotion, and those of fp32 between the promotions.
      sums = precision.sum * precision.promotion / root(depth) + 0x1p-24 * root(depth / precision.promotion);
    }
    const double allowed = kMargin * scale * (sums * magnitude + precision.operand * root(squares));
    if (product.before_gelu.data != nullptr) compare(product.before_gelu, at, sample, value, allowed);
    // The slope of gelu is at most 1.13.
    compare(product.result, at, sample, product.gelu ? gelu(value) : value,
            product.gelu ? 1.13 * allowed + 1e-5 * absolute(value) : allowed);
  }
  FEEDRATE_HD void compare(const Matrix& matrix, const Place& at, std::uint64_t sample, double expected,
                           double allowed) const {
    const double found = matrix.load(at.which, at.row, at.column);
    const bool exact = product.inputs == Inputs::whole && !product.gelu && product.left.slope_of.data == nullptr &&
                       product.right.slope_of.data == nullptr;
    if (exact) {
      expected = rounded(expected, matrix.element);
      allowed = 0;
    } else {
      allowed += rounding_of(matrix.element) * absolute(expected) + least_step(matrix.element);
    }
    add_real(tally->squared_error, (found - expected) * (found - expected));
    add_real(tally->squared_value, expected * expected);
    judge(*tally, sample, found, expected, allowed);
  }
};

FEEDRATE_HD double sign_of(std::uint64_t seed, std::uint64_t column) { return mix64(seed ^ ~column) & 1 ? 1 : -1; }

/// right × x, and the squared norm of `right`.
struct TimesSigns {
  Product product;
  std::uint64_t seed;
  double* times;  // per matrix of the batch and k
  double* squares;
  FEEDRATE_HD std::uint64_t count() const { return product.result.batch * product.depth; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    const std::uint64_t which = i / product.depth, k = i % product.depth;
    double sum = 0, square = 0;
    for (std::uint64_t column = 0; column < product.result.columns; ++column) {
      const double size = product.right.magnitude(which, k, column);
      sum += product.right.load(which, k, column) * sign_of(seed, column);
      square += size * size;
    }
    times[i] = sum;
    add_real(squares[which], square);
  }
};

struct CheckRows {
  Product product;
  Precision precision;
  std::uint64_t seed;
  const double *times, *squares;
  Tally* tally;
  FEEDRATE_HD std::uint64_t count() const { return product.result.batch * product.result.rows; }
  FEEDRATE_HD void operator()(std::uint64_t i) const {
    const std::uint64_t which = i / product.result.rows, row = i % product.result.rows;
    double found = 0, found_squares = 0, expected = 0, left_squares = 0;
    for (std::uint64_t column = 0; column < product.result.columns; ++column) {
      const double value = product.result.load(which, row, column), sign = sign_of(seed, column);
      found += value * sign;
      found_squares += value * value;
      if (product.bias != nullptr) expected += product.bias[column] * sign;
    }
    for (std::uint64_t k = 0; k < product.depth; ++k) {
      const double size = product.left.magnitude(which, row, k);
      expected += product.scale * product.left.load(which, row, k) * times[which * product.depth + k];
      left_squares += size * size;
    }
    const double depth = static_cast<double>(product.depth);
    const double norms = absolute(product.scale) * root(left_squares) * root(squares[which]);
    const double allowed = kMargin * (rounding_of(product.result.element) * root(found_squares) +
                                      (precision.sum * root(depth) + precision.operand) * norms) +
                           least_step(product.result.element) * static_cast<double>(product.result.columns);
    judge(*tally, i, found, expected, allowed);
  }
};

}  // namespace

ProductVerdict check_product(Device& device, Stream& stream, const Product& product, const Precision& precision,
                             std::uint64_t samples, std::uint64_t seed) {
  ProductVerdict verdict;
  const Matrix& result = product.result;
  if (result.batch * result.rows * result.columns == 0) return verdict;
  verdict.samples = samples;
  const Buffer memory = device.allocate_host(2 * sizeof(Tally), HostMemory::pinned);
  auto* const tallies = reinterpret_cast<Tally*>(memory.data());
  tallies[0].first = tallies[1].first = ~std::uint64_t{0};
  // The tallies are updated on the device.
  const Buffer near = device.allocate_device(2 * sizeof(Tally));
  auto* const tally = reinterpret_cast<Tally*>(near.data());
  stream.copy_to_device(near.data(), memory.data(), memory.size());
  stream.launch(spread(CheckSamples{product, precision, samples, seed, tally}));
  const std::uint64_t words = result.batch * (product.depth + 1);
  const Buffer vectors = device.allocate_device(std::max<std::uint64_t>(1, words) * sizeof(double));
  if (!product.gelu) {
    stream.fill(vectors.data(), 0, vectors.size());
    auto* const squares = reinterpret_cast<double*>(vectors.data());
    double* const times = squares + result.batch;
    if (product.depth != 0) stream.launch(spread(TimesSigns{product, seed, times, squares}));
    stream.launch(spread(CheckRows{product, precision, seed, times, squares, tally + 1}));
  }
  stream.copy_to_host(memory.data(), near.data(), memory.size());
  stream.synchronize();
  verdict.error = tallies[0].squared_value > 0 ? std::sqrt(tallies[0].squared_error / tallies[0].squared_value) : 0;
  verdict.share = 1e-9 * static_cast<double>(std::max(tallies[0].share_in_1e9, tallies[1].share_in_1e9));
  for (const bool row_only : {false, true}) {
    const Tally& found = tallies[row_only ? 1 : 0];
    if (found.wrong == 0) continue;
    const Place at =
        row_only ? Place{found.first / result.rows, found.first % result.rows, 0} : place_of(result, found.first, seed);
    const std::uint64_t of = row_only ? result.batch * result.rows : samples;
    verdict.wrong = text_of(WrongProduct{row_only, found.wrong, of, at.row, at.column, at.which, found.found,
                                         found.expected, found.allowed});
    break;
  }
  return verdict;
}

}  // namespace feedrate::ladder
