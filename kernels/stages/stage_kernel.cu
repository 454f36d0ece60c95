#include "kernels/stages/stage_kernel.hpp"

#include "common/error.hpp"
#include "kernels/stages/stage.cuh"

namespace feedrate {
namespace {

constexpr unsigned kStageThreads = 256;  // per block

#ifdef __CUDACC__
__global__ void __launch_bounds__(kStageThreads)
    stage_kernel(StageWork work, const std::byte* in, std::byte* out, bool waits) {
  __shared__ std::uint64_t partial[kStageThreads / 32];
#if __CUDA_ARCH__ >= 900
  // The next kernel may be launched now: each kernel waits for earlier work to end before it does anything.
  cudaTriggerProgrammaticLaunchCompletion();
  if (waits) cudaGridDependencySynchronize();
#endif
  work_as_block(work, in, out, blockIdx.x, gridDim.x, partial);
}
#endif

}  // namespace

void StageLaunch::with_cuda_launch(const UseCudaLaunch& use) const {
#ifdef __CUDACC__
  StageWork work = work_;
  const std::byte* in = in_;
  std::byte* out = out_;
  bool waits = waits_;
  void* arguments[] = {&work, &in, &out, &waits};
  use({reinterpret_cast<const void*>(stage_kernel), blocks_, kStageThreads, 0, arguments});
#else
  static_cast<void>(use);
  throw Failure("built without CUDA");
#endif
}

std::function<void()> StageLaunch::on_cpu() const {
  return [work = work_, in = in_, out = out_] { work_alone(work, in, out); };
}

}  // namespace feedrate
