#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/hash.hpp"
#include "common/message/message.hpp"

/// Contents of files that storage engines read and write. Every 64-bit word is a hash of its file's key and its own
/// position, so any block can be checked alone, no block can be mistaken for another one, and the data cannot be
/// compressed.
namespace feedrate::storage {

/// The key of a file's contents. `version` distinguishes contents that are written to the same place one after another.
constexpr std::uint64_t content_key(std::uint64_t seed, unsigned file, std::uint64_t version) {
  return mix64(mix64(seed + file) + version);
}

/// The 64-bit word at byte `offset` of a file, little-endian. The offset need not be a multiple of 8.
FEEDRATE_HD inline std::uint64_t content_at(std::uint64_t key, std::uint64_t offset) {
  const std::uint64_t word = offset / 8, low = mix64(key + word);
  const unsigned shift = static_cast<unsigned>(offset % 8) * 8;
  return shift == 0 ? low : low >> shift | mix64(key + word + 1) << (64 - shift);
}

/// Writes this thread's share of a file's contents, starting at `offset`, to `to` (aligned to 8 bytes). `threads`
/// threads share the work; `rank` is this thread's index.
FEEDRATE_HD inline void fill_content(std::byte* to, std::size_t bytes, std::uint64_t key, std::uint64_t offset,
                                     std::uint64_t rank = 0, std::uint64_t threads = 1) {
  for (std::uint64_t at = rank * 8; at < bytes; at += threads * 8) {
    const std::uint64_t word = content_at(key, offset + at);
    std::memcpy(__builtin_assume_aligned(to + at, 8), &word, bytes - at < 8 ? bytes - at : 8);
  }
}

/// Returns the number of 8-byte words (the last may be shorter) in this thread's share that differ from the contents of
/// the file. Lowers `first` to the byte position of the first of them, if that is lower.
FEEDRATE_HD inline std::uint64_t count_wrong(const std::byte* data, std::size_t bytes, std::uint64_t key,
                                             std::uint64_t offset, std::uint64_t& first, std::uint64_t rank = 0,
                                             std::uint64_t threads = 1) {
  std::uint64_t wrong = 0;
  for (std::uint64_t at = rank * 8; at < bytes; at += threads * 8) {
    const std::size_t size = bytes - at < 8 ? bytes - at : 8;
    std::uint64_t found = 0, wanted = content_at(key, offset + at);
    std::memcpy(&found, __builtin_assume_aligned(data + at, 8), size);
    if (size < 8) wanted &= (std::uint64_t{1} << 8 * size) - 1;
    if (found == wanted) continue;
    ++wrong;
    if (at < first) first = at;
  }
  return wrong;
}

/// Overwrites this thread's share of a block with zeros. A later read that moves no data to this memory is then found
/// also if it is a read of the same block.
FEEDRATE_HD inline void clear_content(std::byte* data, std::size_t bytes, std::uint64_t rank = 0,
                                      std::uint64_t threads = 1) {
  for (std::uint64_t at = rank * 8; at < bytes; at += threads * 8) {
    std::memset(__builtin_assume_aligned(data + at, 8), 0, bytes - at < 8 ? bytes - at : 8);
  }
}

}  // namespace feedrate::storage
