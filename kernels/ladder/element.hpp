#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/message/message.hpp"

/// Element types of matrices, and conversions that need no CUDA headers and run on host and device.
namespace feedrate::ladder {

/// tf32 is fp32 in memory; tensor cores read 10 of its 23 bits after the point. fp8 is e4m3.
enum class Element : std::uint8_t { fp32, tf32, bf16, fp16, fp8 };

FEEDRATE_HD constexpr unsigned bytes_of(Element element) {
  return element == Element::fp8 ? 1 : element == Element::bf16 || element == Element::fp16 ? 2 : 4;
}
std::string text_of(Element);
const std::vector<std::string>& element_names();
Element element_of(const std::string& name);

/// A float format with a sign, `exponent` bits and `mantissa` bits. `infinite`: the largest exponent means infinity and
/// NaN, as in IEEE 754; otherwise only the pattern of all ones is NaN, and larger values become the largest number
/// (e4m3: Micikevicius et al. 2022, arXiv 2209.05433).
struct FloatFormat {
  unsigned exponent, mantissa;
  bool infinite;
  FEEDRATE_HD constexpr int bias() const { return (1 << (exponent - 1)) - 1; }
};
FEEDRATE_HD constexpr FloatFormat format_of(Element element) {
  if (element == Element::bf16) return {8, 7, true};
  if (element == Element::fp16) return {5, 10, true};
  return {4, 3, false};
}

FEEDRATE_HD inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
FEEDRATE_HD inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The bits of the nearest number of the format; ties go to the even one.
FEEDRATE_HD inline std::uint32_t encode(float value, FloatFormat format) {
  const std::uint32_t bits = bits_of(value), sign = bits >> 31 << (format.exponent + format.mantissa);
  const std::uint32_t all_ones = (1u << format.exponent) - 1;
  const std::uint32_t nan = all_ones << format.mantissa | ((1u << format.mantissa) - 1);
  const std::uint32_t most = format.infinite ? all_ones << format.mantissa : nan - 1;
  const std::uint32_t magnitude = bits & 0x7FFF'FFFFu;
  if (magnitude > 0x7F80'0000u) return sign | nan;
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + format.bias();
  // fp32's own numbers below the smallest normal one become zero.
  if (magnitude < 0x0080'0000u || exponent < -static_cast<int>(format.mantissa)) return sign;
  const std::uint64_t fraction = (magnitude & 0x7F'FFFFu) | 0x80'0000u;
  // Numbers below the smallest normal one lose bits to leading zeros.
  const unsigned dropped = 23 - format.mantissa + (exponent < 1 ? static_cast<unsigned>(1 - exponent) : 0);
  std::uint64_t kept = fraction >> dropped;
  const std::uint64_t rest = fraction & ((std::uint64_t{1} << dropped) - 1), half = std::uint64_t{1} << (dropped - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // A carry moves into the exponent.
  const std::uint64_t coded =
      exponent < 1 ? kept : (static_cast<std::uint64_t>(exponent - 1) << format.mantissa) + kept;
  return sign | (coded > most ? most : static_cast<std::uint32_t>(coded));
}

/// The number with these bits, for formats with a smaller exponent than fp32.
FEEDRATE_HD inline float decode(std::uint32_t bits, FloatFormat format) {
  const std::uint32_t sign = bits >> (format.exponent + format.mantissa) << 31;
  const std::uint32_t all_ones = (1u << format.exponent) - 1;
  const std::uint32_t exponent = bits >> format.mantissa & all_ones, fraction = bits & ((1u << format.mantissa) - 1);
  const bool nan = format.infinite ? exponent == all_ones && fraction != 0
                                   : exponent == all_ones && fraction == (1u << format.mantissa) - 1;
  if (nan) return float_of(0x7FC0'0000u);
  if (format.infinite && exponent == all_ones) return float_of(sign | 0x7F80'0000u);
  if (exponent == 0) {  // zero, and numbers below the smallest normal one
    const float unit =
        float_of(static_cast<std::uint32_t>(128 - format.bias() - static_cast<int>(format.mantissa)) << 23);
    return float_of(sign | bits_of(static_cast<float>(fraction) * unit));
  }
  const auto normal = static_cast<std::uint32_t>(static_cast<int>(exponent) - format.bias() + 127);
  return float_of(sign | normal << 23 | fraction << (23 - format.mantissa));
}

FEEDRATE_HD inline float load_element(const std::byte* at, Element element) {
  switch (element) {
    case Element::bf16:
    case Element::fp16: {
      std::uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      return element == Element::bf16 ? float_of(std::uint32_t{bits} << 16) : decode(bits, format_of(element));
    }
    case Element::fp8:
      return decode(static_cast<std::uint32_t>(*at), format_of(element));
    default: {
      float value;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
  }
}
/// Rounds to nearest, ties to even; tf32 is stored with all bits.
FEEDRATE_HD inline void store_element(std::byte* at, Element element, float value) {
  switch (element) {
    case Element::bf16:
    case Element::fp16: {
      const auto bits = static_cast<std::uint16_t>(encode(value, format_of(element)));
      std::memcpy(at, &bits, sizeof bits);
      return;
    }
    case Element::fp8:
      *at = static_cast<std::byte>(encode(value, format_of(element)));
      return;
    default:
      std::memcpy(at, &value, sizeof value);
  }
}

}  // namespace feedrate::ladder
