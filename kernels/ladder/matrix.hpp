#pragma once
#include <cstddef>
#include <cstdint>

#include "common/hash.hpp"
#include "kernels/ladder/element.hpp"

/// Matrices of a ladder's problems: their place in memory and their values.
namespace feedrate::ladder {

/// A batch of matrices in rows. The elements between the end of a row and the next row, and between matrices, belong to
/// no matrix.
struct Matrix {
  std::byte* data = nullptr;
  Element element = Element::fp32;
  std::uint64_t rows = 0, columns = 0, stride = 0;  ///< `stride`: elements from one row to the next
  std::uint64_t batch = 1;

  FEEDRATE_HD std::uint64_t elements() const { return batch * rows * stride; }
  FEEDRATE_HD std::uint64_t bytes() const { return elements() * bytes_of(element); }
  FEEDRATE_HD std::byte* at(std::uint64_t which, std::uint64_t row, std::uint64_t column) const {
    return data + ((which * rows + row) * stride + column) * bytes_of(element);
  }
  FEEDRATE_HD float load(std::uint64_t which, std::uint64_t row, std::uint64_t column) const {
    return load_element(at(which, row, column), element);
  }
};

/// How the values of inputs are chosen. Random data matter: tensor cores draw less power for zeros, and clock higher.
enum class Inputs : std::uint8_t {
  normal,    ///< N(0, 1)
  positive,  ///< |N(0, 1)|: sums grow, so that accumulators with few bits show
  whole,     ///< whole numbers from -4 to 4: sums are exact
  zeros
};

const std::vector<std::string>& input_names();
Inputs inputs_of(const std::string& name);

/// Help of the axes that ladders share.
inline constexpr auto kDtypeHelp = "type of the elements: fp32, or tensor cores' tf32, bf16, fp16, fp8";
inline constexpr auto kInputsHelp =
    "normal: N(0, 1); positive: |N(0, 1)|; whole: from -4 to 4, so that sums are exact; zeros";

/// Name of the limit of multiply-adds with elements of this type.
std::string arithmetic_limit(Element);

/// Value number `index` of the inputs with this seed.
FEEDRATE_HD inline float input_at(Inputs inputs, std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t random = mix64(mix64(seed) + index);
  if (inputs == Inputs::zeros) return 0;
  if (inputs == Inputs::whole) return static_cast<float>(static_cast<int>(random % 9) - 4);
  // Box and Muller (1958), with 24 bits for the radius and 24 for the angle.
  constexpr float kUnit = 1.0f / (1 << 24), kTwoPi = 6.2831853f;
  const float radius = (static_cast<float>(random >> 40) + 0.5f) * kUnit;
  const float angle = static_cast<float>(random & 0xFF'FFFF) * kUnit * kTwoPi;
#ifdef __CUDA_ARCH__
  const float normal = sqrtf(-2 * logf(radius)) * cosf(angle);
#else
  const float normal = __builtin_sqrtf(-2 * __builtin_logf(radius)) * __builtin_cosf(angle);
#endif
  return inputs == Inputs::positive ? (normal < 0 ? -normal : normal) : normal;
}

}  // namespace feedrate::ladder
