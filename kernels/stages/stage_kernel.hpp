#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "common/device/launchable.hpp"
#include "kernels/stages/item.hpp"

namespace feedrate {

/// What a stage of a pipeline does with an item.
enum class StageKind : std::uint32_t {
  generate,   ///< makes the item's words from its id
  transform,  ///< reads an item, writes an item
  reduce,     ///< reads an item, writes its checksum
};

/// A stage's work, as its kernel takes it. The input of `generate` is an id (std::uint64_t), the output of `reduce` an
/// ItemHeader that is zero before; all others are an ItemHeader and `words` 64-bit words behind it.
struct StageWork {
  StageKind kind = StageKind::transform;
  unsigned stage = 0;        ///< its place in the pipeline, which is a part of its map
  std::uint32_t rounds = 1;  ///< of the map, for each word: its cost
  std::uint64_t words = 0;   ///< of an item
};

/// Bytes of an item with its header.
constexpr std::size_t item_bytes(std::uint64_t words) { return sizeof(ItemHeader) + words * sizeof(std::uint64_t); }

/// A stage's kernel on one item.
class StageLaunch final : public Launchable {
 public:
  StageLaunch(const StageWork& work, unsigned blocks, bool waits, const std::byte* in, std::byte* out)
      : work_(work), blocks_(blocks), waits_(waits), in_(in), out_(out) {}
  void with_cuda_launch(const UseCudaLaunch&) const override;
  std::function<void()> on_cpu() const override;

 private:
  StageWork work_;
  [[maybe_unused]] unsigned blocks_;
  [[maybe_unused]] bool waits_;
  const std::byte* in_;
  std::byte* out_;
};

/// The kernel of a stage: `blocks` blocks, so at most as many SMs.
///
/// A kernel that was launched early (Stream::launch_early) waits for the one before it, unless `waits` is false: then
/// what it reads may be anything, as tests want it.
struct StageKernel {
  StageWork work;
  unsigned blocks = 1;
  bool waits = true;
  StageLaunch on(const std::byte* in, std::byte* out) const { return {work, blocks, waits, in, out}; }
};

}  // namespace feedrate
