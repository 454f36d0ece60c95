#include "kernels/stages/stage_kernel.hpp"

#include "common/error.hpp"
#include "kernels/stages/stage.cuh"

namespace feedrate {
namespace {

constexpr unsigned kStageThreads = 256;  // of a block

#ifdef __CUDACC__
__global__ void __launch_bounds__(kStageThreads)
    stage_kernel(StageWork work, const std::byte* in, std::byte* out, bool waits) {
  __shared__ std::uint64_t partial[kStageThreads / 32];
#if __CUDA_ARCH__ >= 900
  // Nothing is done here before what came earlier has ended, so whatever comes next may be brought at once.
  cudaTriggerProgrammaticLaunchCompletion();
  if (waits) cudaGridDependencySynchronize();
#endif
  work_as_block(work, in, out, blockIdx.x, gridDim.x, partial);
}
#endif

class StageKernel final : public LaunchedKernel {
 public:
  StageKernel(const StageWork& work, unsigned blocks, bool waits) : work_(work), blocks_(blocks), waits_(waits) {}

  void run_on_cpu(const BatchView& batch) const override { work_alone(work_, batch.in, batch.out); }
  void with_cuda_launch(const BatchView& batch, unsigned /*block*/, const UseCudaLaunch& use) const override {
#ifdef __CUDACC__
    StageWork work = work_;
    const std::byte* in = batch.in;
    std::byte* out = batch.out;
    bool waits = waits_;
    void* arguments[] = {&work, &in, &out, &waits};
    use({reinterpret_cast<const void*>(stage_kernel), blocks_, kStageThreads, 0, arguments});
#else
    static_cast<void>(batch);
    static_cast<void>(use);
    throw Failure("built without CUDA");
#endif
  }

 private:
  StageWork work_;
  [[maybe_unused]] unsigned blocks_;
  [[maybe_unused]] bool waits_;
};

}  // namespace

std::unique_ptr<Kernel> make_stage_kernel(const StageWork& work, unsigned blocks, bool waits) {
  return std::make_unique<StageKernel>(work, blocks, waits);
}

}  // namespace feedrate
