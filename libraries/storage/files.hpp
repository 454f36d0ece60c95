#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libraries/storage/descriptor.hpp"
#include "libraries/storage/engine.hpp"

namespace feedrate::storage {

/// Alignment of offsets, sizes and memory that every file system and device accepts for O_DIRECT. Linux requires at
/// most the logical block size, which is 512 or 4096 bytes.
inline constexpr std::size_t kDirectAlignment = 4096;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Files as an engine opens them: with O_DIRECT if the point requests it, and a second time without it, for the parts
/// of requests that O_DIRECT does not allow.
class OpenFiles {
 public:
  explicit OpenFiles(const EngineConfig&);
  /// Closes all files and opens them again.
  void reopen();
  /// The descriptor for a transfer: the direct one, unless the transfer is misaligned.
  int descriptor(unsigned file, std::uint64_t offset, std::size_t bytes) const {
    return open_.at(index(file, offset, bytes)).get();
  }
  /// Its position in all().
  std::size_t index(unsigned file, std::uint64_t offset, std::size_t bytes) const {
    const bool aligned = offset % kDirectAlignment == 0 && bytes % kDirectAlignment == 0;
    return direct_ && aligned ? files_.size() + file : file;
  }
  std::size_t size() const { return files_.size(); }
  /// All descriptors: those of the page cache, then the direct ones.
  std::vector<int> all() const;

 private:
  std::span<const File> files_;
  int flags_;
  bool direct_;
  std::vector<Descriptor> open_;  // in the order of all()
};

/// Reads or writes a block with pread() or pwrite(), in as many calls as it takes. A call that moves fewer bytes than
/// requested is continued, unless it moves none. Returns the completion's error and bytes.
Completion move_block(Operation, int descriptor, std::byte* host, const Request&);

/// Host memory for blocks: page-aligned, in huge pages if the system has them.
class Staging {
 public:
  /// Throws Failure if the memory cannot be allocated or pinned; the message states which limit to raise.
  Staging(Device&, std::size_t slots, std::size_t bytes, HostMemory = HostMemory::pinned);
  std::byte* slot(std::size_t index) const { return memory_.data() + index * stride_; }
  std::span<std::byte> all() const { return {memory_.data(), memory_.size()}; }
  std::size_t stride() const { return stride_; }

 private:
  std::size_t stride_;
  Buffer memory_, pinned_;
};

}  // namespace feedrate::storage
