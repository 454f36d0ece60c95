#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/hash.hpp"

/// Payload bytes as a function of (seed, id): little-endian 64-bit words of an arithmetic sequence with a hashed start;
/// a last word that does not fit is truncated. Every payload is unique. Generating a payload (runs.hpp) takes one
/// vector addition per 64 bytes, so data generation is never a queue's bottleneck.
namespace feedrate {

inline constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ull;  // odd, so that a payload's 64-bit words never repeat
constexpr std::uint64_t first_word(std::uint64_t seed, std::uint64_t id) { return mix64(seed ^ mix64(id)); }

/// The checksum in a result's header: the sum of the payload's 32-bit words, the last one padded with zeros, modulo
/// 2^32.
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
