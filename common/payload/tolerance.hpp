#pragma once
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace feedrate {

/// Allowed deviation of a result's floats from the reference's. A float is accepted if it is within any of these
/// tolerances. If all are 0, a result must match the reference bit for bit.
struct Tolerance {
  double absolute = 0;
  double relative = 0;     ///< relative to the expected value
  std::uint32_t ulps = 0;  ///< distance in representable floats (ULPs)

  bool allows(float expected, float found) const {
    if (std::memcmp(&expected, &found, sizeof found) == 0) return true;
    if (!std::isfinite(expected) || !std::isfinite(found)) return false;
    const double apart = std::abs(double{expected} - double{found});
    if (absolute > 0 && apart <= absolute) return true;
    if (relative > 0 && apart <= relative * std::abs(double{expected})) return true;
    return ulps > 0 && std::llabs(place_of(expected) - place_of(found)) <= static_cast<long long>(ulps);
  }
  /// Whether `bytes` bytes of floats are within the tolerance; trailing bytes that form no float must match bit for
  /// bit.
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
  /// Index of a finite float in the order of all floats, so that neighbours differ by one.
  static long long place_of(float value) {
    std::int32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits >= 0 ? bits : std::int64_t{INT32_MIN} - bits;
  }
};

}  // namespace feedrate
