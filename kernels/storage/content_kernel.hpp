#pragma once
#include <cstddef>
#include <cstdint>

#include "common/device/launchable.hpp"

namespace feedrate::storage {

/// A block in device memory, and the position in a file whose contents it holds or receives.
struct Block {
  std::byte* data = nullptr;  ///< aligned to 8 bytes
  std::uint64_t bytes = 0, key = 0, offset = 0;
};

/// The result of checking a block. The host sets it to its default value before the check.
struct Verdict {
  std::uint64_t wrong = 0;                  ///< number of 8-byte words that differ from the file's contents
  std::uint64_t first = ~std::uint64_t{0};  ///< offset of the first wrong word in the block, in bytes
};

/// Fills blocks with their file's contents, or compares them with it and then clears them. `blocks` and `verdicts` are
/// pinned host memory with `count` entries each; without `verdicts`, the blocks are filled.
class ContentLaunch final : public Launchable {
 public:
  ContentLaunch(const Block* blocks, Verdict* verdicts, unsigned count, std::size_t largest)
      : blocks_(blocks), verdicts_(verdicts), count_(count), largest_(largest) {}
  void with_cuda_launch(const UseCudaLaunch&) const override;
  std::function<void()> on_cpu() const override;

 private:
  const Block* blocks_;
  Verdict* verdicts_;
  unsigned count_;
  [[maybe_unused]] std::size_t largest_;  // bytes of the largest block
};

}  // namespace feedrate::storage
