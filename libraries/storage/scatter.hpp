#pragma once
#include <cstddef>

#include "common/device/device.hpp"
#include "common/device/launchable.hpp"

namespace feedrate::storage {

/// Most copies of one ScatterLaunch: the most blocks of a grid in its second dimension.
inline constexpr std::size_t kMostScattered = 65535;

/// Copies made by a kernel, between device memory and pinned host memory. `list` has `count` entries in pinned host
/// memory and must stay unchanged until the launch has ended. `largest`: bytes of the largest copy.
class ScatterLaunch final : public Launchable {
 public:
  ScatterLaunch(const Copy* list, unsigned count, std::size_t largest)
      : list_(list), count_(count), largest_(largest) {}
  void with_cuda_launch(const UseCudaLaunch&) const override;
  std::function<void()> on_cpu() const override;

 private:
  const Copy* list_;
  unsigned count_;
  [[maybe_unused]] std::size_t largest_;
};

}  // namespace feedrate::storage
