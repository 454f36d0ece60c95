#pragma once
#include <cstdint>
#include <string_view>

namespace feedrate {

/// SplitMix64's finalizer (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014):
/// a bijection on 64 bits, so different inputs never share an output.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// FNV-1a over bytes, finalized with mix64. Stable across machines and versions, as row ids require.
constexpr std::uint64_t hash64(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return mix64(h);
}

}  // namespace feedrate
