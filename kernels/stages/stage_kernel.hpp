#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "common/device/launchable.hpp"
#include "kernels/stages/item.hpp"

namespace feedrate {

/// The work of a pipeline stage on an item.
enum class StageKind : std::uint32_t {
  generate,   ///< generates the item's words from its id
  transform,  ///< reads an item and writes an item
  reduce,     ///< reads an item and writes its checksum
};

/// A stage's work, as an argument of its kernel. The input of `generate` is an id (std::uint64_t); the output of
/// `reduce` is an ItemHeader, which must initially be zero. All other inputs and outputs are an ItemHeader followed by
/// `words` 64-bit words.
struct StageWork {
  StageKind kind = StageKind::transform;
  unsigned stage = 0;        ///< the stage's index in the pipeline; its map depends on this
  std::uint32_t rounds = 1;  ///< applications of the map per word: the stage's cost
  std::uint64_t words = 0;   ///< per item
};

/// Bytes of an item with its header.
constexpr std::size_t item_bytes(std::uint64_t words) { return sizeof(ItemHeader) + words * sizeof(std::uint64_t); }

/// The launch of a stage's kernel for one item.
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

/// The kernel of a stage, with `blocks` blocks and hence at most that many SMs.
///
/// A kernel that is launched early (Stream::launch_early) waits for the previous kernel unless `waits` is false.
/// Only tests set it to false; the kernel may then read incomplete data.
struct StageKernel {
  StageWork work;
  unsigned blocks = 1;
  bool waits = true;
  StageLaunch on(const std::byte* in, std::byte* out) const { return {work, blocks, waits, in, out}; }
};

}  // namespace feedrate
