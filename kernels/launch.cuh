#pragma once
#include <functional>
#include <tuple>
#include <utility>

#include "common/device/launchable.hpp"
#include "common/error.hpp"

namespace feedrate {

/// Grid, block and cluster of a launch, and its shared memory.
struct LaunchShape {
  Extent grid, block;
  unsigned shared_bytes = 0;  ///< dynamic shared memory per block
  Extent cluster = {};
};

/// A launch of a __global__ function: its shape, and copies of its arguments.
///
///     KernelLaunch(scale_kernel, {blocks, 256}, [=] { scale_on_cpu(in, out, n); }, in, out, n)
///
/// In a build without CUDA the kernel is nullptr, and only the CPU function runs.
template <class... Parameters>
class KernelLaunch final : public Launchable {
 public:
  template <class... Arguments>
  KernelLaunch(void (*kernel)(Parameters...), LaunchShape shape, std::function<void()> on_cpu, Arguments&&... arguments)
      : kernel_(reinterpret_cast<const void*>(kernel)),
        shape_(shape),
        on_cpu_(std::move(on_cpu)),
        arguments_(std::forward<Arguments>(arguments)...) {}

  void with_cuda_launch(const UseCudaLaunch& use) const override {
    if (kernel_ == nullptr) throw Failure("built without CUDA");
    allow_shared_memory(kernel_, shape_.shared_bytes);
    auto arguments = arguments_;
    std::apply(
        [&](auto&... each) {
          void* pointers[] = {static_cast<void*>(&each)..., nullptr};
          use({kernel_, shape_.grid, shape_.block, shape_.shared_bytes, pointers, shape_.cluster});
        },
        arguments);
  }
  std::function<void()> on_cpu() const override { return on_cpu_; }

 private:
  const void* kernel_;
  LaunchShape shape_;
  std::function<void()> on_cpu_;
  std::tuple<Parameters...> arguments_;
};

}  // namespace feedrate
