#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/hash.hpp"

/// Payload bytes as a function of (seed, id): little-endian 64-bit words of an arithmetic sequence from a hashed start;
/// a last word that does not fit is cut. Every message is unique, and making one (runs.hpp does it) is a vector's
/// addition for every 64 bytes, so that making data is not what a queue waits for.
namespace feedrate {

inline constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ull;  // odd, so 64-bit words of one payload never repeat
constexpr std::uint64_t first_word(std::uint64_t seed, std::uint64_t id) { return mix64(seed ^ mix64(id)); }

/// The sum that a result's header carries: its 32-bit words, the last padded with zeros, modulo 2^32.
inline std::uint32_t checksum_of(const std::byte* payload, std::size_t bytes) {
  std::uint32_t sum = 0, word = 0;
  const std::size_t words = bytes / sizeof word;
  for (std::size_t i = 0; i < words; ++i) {
    std::memcpy(&word, payload + i * sizeof word, sizeof word);
    sum += word;
  }
  word = 0;
  std::memcpy(&word, payload + words * sizeof word, bytes % sizeof word);
  return sum + word;
}

}  // namespace feedrate
