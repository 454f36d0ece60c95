#include <vector>

#include "common/device/cuda_check.hpp"
#include "experiments/launch/launcher.hpp"

namespace feedrate::launch {
namespace {

__global__ void null_kernel(std::uint64_t* counter) {
  if (counter != nullptr && threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(counter), 1ull);
}

/// Like null_kernel, but lets the next kernel of the stream begin at once and waits until the previous one has ended.
__global__ void dependent_kernel(std::uint64_t* counter) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
  if (counter != nullptr && threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(counter), 1ull);
}

class CudaLauncher final : public Launcher {
 public:
  explicit CudaLauncher(const Shape& shape) : shape_(shape), streams_(shape.streams) {
    if (shape.counted) {
      check(cudaMalloc(&counter_, sizeof *counter_), "cudaMalloc");
      check(cudaMemset(counter_, 0, sizeof *counter_), "cudaMemset");
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    for (cudaStream_t& stream : streams_) {
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    if (shape.form == "graph") capture();
  }
  ~CudaLauncher() override {
    for (cudaGraphExec_t graph : graphs_) cudaGraphExecDestroy(graph);
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    cudaFree(counter_);
  }

  void launch() override {
    const std::size_t at = next_++ % streams_.size();
    if (shape_.form == "graph") return check(cudaGraphLaunch(graphs_[at], streams_[at]), "cudaGraphLaunch");
    for (unsigned i = 0; i < shape_.kernels; ++i) {
      shape_.form == "pdl" ? launch_dependent(streams_[at]) : launch_plain(streams_[at]);
    }
  }
  void wait() override {
    for (cudaStream_t stream : streams_) check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  std::uint64_t counted() override {
    std::uint64_t count = 0;
    check(cudaMemcpy(&count, counter_, sizeof count, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return count;
  }

 private:
  void launch_plain(cudaStream_t stream) {
    null_kernel<<<1, shape_.block, 0, stream>>>(counter_);
    check(cudaGetLastError(), "kernel launch");
  }
  void launch_dependent(cudaStream_t stream) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(1);
    config.blockDim = dim3(shape_.block);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, dependent_kernel, counter_), "cudaLaunchKernelEx");
  }
  /// Captures one graph per stream, because an executable graph cannot run concurrently with itself.
  void capture() {
    for (cudaStream_t stream : streams_) {
      cudaGraph_t graph = nullptr;
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
      for (unsigned i = 0; i < shape_.kernels; ++i) launch_plain(stream);
      check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
      cudaGraphExec_t executable = nullptr;
      const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
      cudaGraphDestroy(graph);
      check(made, "cudaGraphInstantiate");
      graphs_.push_back(executable);
      check(cudaGraphUpload(executable, stream), "cudaGraphUpload");
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }
  }

  Shape shape_;
  std::uint64_t* counter_ = nullptr;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaGraphExec_t> graphs_;
  std::size_t next_ = 0;
};

}  // namespace

std::string why_unsupported_on_cuda(const Shape& shape) {
  if (shape.form != "pdl") return "";
  int device = 0, major = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major >= 9 ? "" : "form pdl needs a GPU of compute capability 9.0 or later";
}

std::unique_ptr<Launcher> make_cuda_launcher(const Shape& shape) { return std::make_unique<CudaLauncher>(shape); }

}  // namespace feedrate::launch
