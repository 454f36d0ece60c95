#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace feedrate {

/// How far a result's floats may lie from the reference's: within any of these. Without one a result must be the
/// reference's bit for bit.
struct Tolerance {
  double absolute = 0;
  double relative = 0;     ///< of the expected value
  std::uint32_t ulps = 0;  ///< floats in between, counted as representable numbers

  bool allows(float expected, float found) const {
    if (std::memcmp(&expected, &found, sizeof found) == 0) return true;
    if (!std::isfinite(expected) || !std::isfinite(found)) return false;
    const double apart = std::abs(double{expected} - double{found});
    if (absolute > 0 && apart <= absolute) return true;
    if (relative > 0 && apart <= relative * std::abs(double{expected})) return true;
    return ulps > 0 && std::llabs(place_of(expected) - place_of(found)) <= static_cast<long long>(ulps);
  }
  /// Of `bytes` bytes of floats, a rest that is no float bit for bit.
  bool allows(const std::byte* expected, const std::byte* found, std::size_t bytes) const {
    std::size_t at = 0;
    for (; at + sizeof(float) <= bytes; at += sizeof(float)) {
      float wanted = 0, got = 0;
      std::memcpy(&wanted, expected + at, sizeof wanted);
      std::memcpy(&got, found + at, sizeof got);
      if (!allows(wanted, got)) return false;
    }
    return std::memcmp(expected + at, found + at, bytes - at) == 0;
  }

 private:
  /// The place of a finite float among all of them, so that neighbours differ by one.
  static long long place_of(float value) {
    std::int32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits >= 0 ? bits : std::int64_t{INT32_MIN} - bits;
  }
};

}  // namespace feedrate
