#include "work.hpp"

#include <mutex>

namespace feedrate::python {
namespace {

struct Echo {
  static FEEDRATE_HD bool accepts(std::size_t) { return true; }
  static FEEDRATE_HD std::size_t result_bytes(std::size_t bytes) { return bytes; }
  template <class Group>
  FEEDRATE_HD std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    const auto pieces = static_cast<unsigned>((bytes + sizeof(Vec16) - 1) / sizeof(Vec16));
    for (unsigned i = group.rank(); i < pieces; i += group.size()) out[i] = in[i];
    return 0;
  }
};

#ifdef __CUDACC__
/// The kernels of an image. They are loaded on first use, which must be on a thread that uses the ring's GPU.
class CompiledKernel final : public Kernel {
 public:
  explicit CompiledKernel(CompiledWork work) : work_(std::move(work)) {
    if (work_.members.empty()) work_.members.push_back(0);
  }
  ~CompiledKernel() override {
    if (library_ != nullptr) static_cast<void>(cudaLibraryUnload(library_));  // fails if the context was destroyed
  }
  void run_on_cpu(const BatchView&) const override { throw Failure("CUDA C++ work cannot run on the CPU device"); }
  void with_cuda_launch(const BatchView& batch, unsigned block, const UseCudaLaunch& use) const override {
    const NoRecorder recorder(batch.recorder);
    with_batch_launch(kernels()[0], work_.members.data(), &recorder, batch, block, use);
  }
  void launch_resident_on_cuda(std::span<const LaneView> lanes, const ResidentShape& shape,
                               void* stream) const override {
    launch_resident(resident(shape)[resident_form(lanes.front(), shape)], work_.members.data(), lanes, shape,
                    static_cast<cudaStream_t>(stream));
  }
  unsigned resident_blocks_that_fit(const ResidentShape& shape) const override {
    return resident_blocks(resident(shape), shape);
  }

 private:
  const std::array<const void*, kCompiledNames>& kernels() const {
    std::call_once(loaded_, [this] {
      check(cudaLibraryLoadData(&library_, work_.image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            "cudaLibraryLoadData");
      for (std::size_t i = 0; i < kernels_.size(); ++i) {
        cudaKernel_t kernel = nullptr;
        check(cudaLibraryGetKernel(&kernel, library_, work_.names.at(i).c_str()), work_.names[i].c_str());
        kernels_[i] = kernel;
      }
    });
    return kernels_;
  }
  ResidentKernels resident(const ResidentShape& shape) const {
    ResidentKernels found{};
    const std::size_t first = teams_are_warps(shape) ? 1 + kResidentForms : 1;
    std::copy_n(kernels().begin() + first, found.size(), found.begin());
    return found;
  }

  CompiledWork work_;
  mutable std::once_flag loaded_;
  mutable cudaLibrary_t library_ = nullptr;
  mutable std::array<const void*, kCompiledNames> kernels_{};
};
static_assert(kCompiledNames == 1 + 2 * kResidentForms);
#endif

}  // namespace

std::unique_ptr<Kernel> make_echo(bool by_address) {
  if (by_address) return std::make_unique<KernelOf<ByAddress<Echo>>>();
  return std::make_unique<KernelOf<Echo>>();
}

std::unique_ptr<Kernel> make_compiled([[maybe_unused]] const CompiledWork& work) {
#ifdef __CUDACC__
  if (work.names.size() != kCompiledNames) throw Failure("the compiled image is from another version");
  return std::make_unique<CompiledKernel>(work);
#else
  throw Failure("built without CUDA");
#endif
}

Order::Order([[maybe_unused]] bool gpu) {
#ifdef __CUDACC__
  if (!gpu) return;
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_ = made;
#endif
}

Order::~Order() {
#ifdef __CUDACC__
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(static_cast<cudaStream_t>(stream_)));
#endif
}

void Order::wait() const {
#ifdef __CUDACC__
  if (stream_ != nullptr) check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), "cudaStreamSynchronize");
#endif
}

std::vector<GpuInfo> gpus() {
  std::vector<GpuInfo> found;
#ifdef __CUDACC__
  if (!cuda_unavailable().empty()) return found;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return found;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp gpu{};
    if (cudaGetDeviceProperties(&gpu, i) != cudaSuccess) continue;
    found.push_back({i, gpu.name, gpu.totalGlobalMem, gpu.multiProcessorCount,
                     std::to_string(gpu.major) + "." + std::to_string(gpu.minor)});
  }
#endif
  return found;
}

}  // namespace feedrate::python
