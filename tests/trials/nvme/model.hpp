#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/hash.hpp"

namespace feedrate::trial {

/// What a drive must hold: for each block the version that was written last, and the commands in flight on it. Words of
/// a block are hashes of its number, its version and their position.
class Model {
 public:
  Model(std::uint64_t blocks, std::size_t block_bytes) : blocks_(blocks), block_bytes_(block_bytes) {}

  std::uint64_t blocks() const { return blocks_.size(); }
  /// Whether a command may start: no other command in flight writes these blocks or, if it writes, reads them.
  bool is_free(std::uint64_t lba, std::uint32_t count, bool write) const {
    for (std::uint64_t i = lba; i < lba + count; ++i) {
      if (blocks_[i].writing || (write && blocks_[i].readers != 0)) return false;
    }
    return true;
  }
  void begin(std::uint64_t lba, std::uint32_t count, bool write) {
    for (std::uint64_t i = lba; i < lba + count; ++i) {
      if (write) {
        blocks_[i].writing = true;
      } else {
        ++blocks_[i].readers;
      }
    }
  }
  void end(std::uint64_t lba, std::uint32_t count, bool write) {
    for (std::uint64_t i = lba; i < lba + count; ++i) {
      if (write) {
        blocks_[i].writing = false;
      } else {
        --blocks_[i].readers;
      }
    }
  }
  void set(std::uint64_t lba, std::uint32_t count, std::uint64_t version) {
    for (std::uint64_t i = lba; i < lba + count; ++i) blocks_[i].version = version;
  }
  void fill(std::byte* to, std::uint64_t lba, std::uint32_t count, std::uint64_t version) const {
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::size_t word = 0; word < block_bytes_ / 8; ++word) {
        const std::uint64_t value = word_of(lba + i, version, word);
        std::memcpy(to + i * block_bytes_ + word * 8, &value, 8);
      }
    }
  }
  /// Number of the blocks in `data` that do not hold their current version.
  std::uint64_t count_wrong(const std::byte* data, std::uint64_t lba, std::uint32_t count) const {
    std::uint64_t wrong = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      wrong += holds(data + i * block_bytes_, lba + i, blocks_[lba + i].version) ? 0 : 1;
    }
    return wrong;
  }
  /// After a write of `version` that was aborted: each block holds its old or its new version. Takes over which of them
  /// `data` has; returns the number of blocks with neither.
  std::uint64_t settle(const std::byte* data, std::uint64_t lba, std::uint32_t count, std::uint64_t version) {
    std::uint64_t wrong = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::byte* const block = data + i * block_bytes_;
      if (holds(block, lba + i, version)) {
        blocks_[lba + i].version = version;
      } else if (!holds(block, lba + i, blocks_[lba + i].version)) {
        ++wrong;
      }
    }
    return wrong;
  }

 private:
  struct Block {
    std::uint64_t version = 0;
    std::uint16_t readers = 0;
    bool writing = false;
  };
  static std::uint64_t word_of(std::uint64_t lba, std::uint64_t version, std::size_t word) {
    return mix64(lba << 40 ^ version << 12 ^ word);
  }
  bool holds(const std::byte* block, std::uint64_t lba, std::uint64_t version) const {
    for (std::size_t word = 0; word < block_bytes_ / 8; ++word) {
      std::uint64_t value;
      std::memcpy(&value, block + word * 8, 8);
      if (value != word_of(lba, version, word)) return false;
    }
    return true;
  }
  std::vector<Block> blocks_;
  std::size_t block_bytes_;
};

}  // namespace feedrate::trial
