#pragma once
#include <cuda.h>

#include <array>
#include <vector>

#include "common/device/cuda_check.hpp"
#include "common/device/cuda_clock.hpp"
#include "common/device/device.hpp"

/// Events and streams of the `cuda` device.
namespace feedrate {

class CudaEvent final : public Event {
 public:
  /// `clock`: given if the event's time will be read; null for an untimed event.
  explicit CudaEvent(const CudaClock* clock = nullptr) : clock_(clock) {
    check(cudaEventCreateWithFlags(&event_, clock != nullptr ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreate");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  bool ready() override {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaEventQuery");
    return true;
  }
  std::uint64_t ready_ns() override { return clock_ == nullptr ? 0 : clock_->ready_ns(event_); }
  double ns_since(const Event& earlier) const override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event_, event_),
          "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e6;
  }
  cudaEvent_t get() const { return event_; }

 private:
  const CudaClock* clock_;
  cudaEvent_t event_ = nullptr;
};

/// Whether this build and the installed driver support cudaMemcpyBatchAsync in the form introduced with CUDA 13.
inline bool has_batched_copies() {
#if CUDART_VERSION >= 13000
  static const bool known = [] {
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess && version >= 12080;
  }();
  return known;
#else
  return false;
#endif
}

/// Returns the driver's cuStreamWriteValue64, for which the runtime has no equivalent.
inline auto stream_write_value() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry, 12000, cudaEnableDefault, &found),
        "looking up cuStreamWriteValue64");
  if (found != cudaDriverEntryPointSuccess) throw Failure("this driver has no cuStreamWriteValue64");
  return reinterpret_cast<decltype(&cuStreamWriteValue64)>(entry);
}

inline dim3 dim3_of(const Extent& extent) { return {extent.x, extent.y, extent.z}; }

class CudaStream final : public Stream {
 public:
  // Non-blocking: it must never wait for the legacy stream, which waits for everything.
  CudaStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  /// Wraps a stream that its creator destroys.
  explicit CudaStream(cudaStream_t others) : stream_(others), owned_(false) {}
  ~CudaStream() override {
    if (!owned_) return;
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) override {
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync to device");
  }
  void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) override {
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync to host");
  }
  void copy_batch(std::span<const Copy> copies, Direction direction) override {
#if CUDART_VERSION >= 13000
    if (has_batched_copies()) {
      to_.clear(), from_.clear(), bytes_.clear();
      for (const Copy& copy : copies) {
        to_.push_back(copy.to);
        from_.push_back(copy.from);
        bytes_.push_back(copy.bytes);
      }
      cudaMemcpyAttributes attributes{};
      attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
      std::size_t first = 0;
      return check(
          cudaMemcpyBatchAsync(to_.data(), from_.data(), bytes_.data(), copies.size(), &attributes, &first, 1, stream_),
          "cudaMemcpyBatchAsync");
    }
#endif
    for (const Copy& copy : copies) {
      direction == Direction::to_device ? copy_to_device(copy.to, copy.from, copy.bytes)
                                        : copy_to_host(copy.to, copy.from, copy.bytes);
    }
  }
  void copy_to_peer(std::byte* to, const std::byte* from, std::size_t bytes) override {
    // The addresses identify their GPUs.
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync between GPUs");
  }
  void launch(const Launchable& launchable) override {
    launchable.with_cuda_launch([this](const CudaLaunch& launch) {
      if (launch.cluster.size() != 1) return launch_with(launch, false);
      check(cudaLaunchKernel(launch.kernel, dim3_of(launch.grid), dim3_of(launch.block), launch.arguments,
                             launch.shared_bytes, stream_),
            "launching a kernel");
    });
  }
  void launch_early(const Launchable& launchable) override {
    launchable.with_cuda_launch([this](const CudaLaunch& launch) { launch_with(launch, true); });
  }
  void fill(std::byte* device, unsigned char value, std::size_t bytes) override {
    check(cudaMemsetAsync(device, value, bytes, stream_), "cudaMemsetAsync");
  }
  std::byte* allocate(std::size_t bytes) override {
    void* data = nullptr;
    check(cudaMallocAsync(&data, bytes, stream_), "cudaMallocAsync");
    return static_cast<std::byte*>(data);
  }
  void free(std::byte* data) override { check(cudaFreeAsync(data, stream_), "cudaFreeAsync"); }
  void write_word(std::uint64_t* device, std::uint64_t value) override {
    static const auto write = stream_write_value();
    // Without flags a fence precedes the write: a reader that sees the word also sees the results of all earlier work.
    const CUresult result = write(stream_, reinterpret_cast<CUdeviceptr>(device), value, CU_STREAM_WRITE_VALUE_DEFAULT);
    if (result != CUDA_SUCCESS) throw Failure("cuStreamWriteValue64: error " + std::to_string(result));
  }
  void record(Event& event) override {
    check(cudaEventRecord(dynamic_cast<CudaEvent&>(event).get(), stream_), "cudaEventRecord");
  }
  void wait(Event& event) override {
    check(cudaStreamWaitEvent(stream_, dynamic_cast<CudaEvent&>(event).get()), "cudaStreamWaitEvent");
  }
  void synchronize() override { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  cudaStream_t get() const { return stream_; }

 private:
  /// Launches with attributes: a kernel with clusters, or one that may begin early.
  void launch_with(const CudaLaunch& launch, bool early) {
    std::array<cudaLaunchAttribute, 2> attributes{};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3_of(launch.grid);
    config.blockDim = dim3_of(launch.block);
    config.dynamicSmemBytes = launch.shared_bytes;
    config.stream = stream_;
    config.attrs = attributes.data();
    if (early) {
      auto& attribute = attributes[config.numAttrs++];
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
    }
    if (launch.cluster.size() != 1) {
      auto& attribute = attributes[config.numAttrs++];
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
    }
    check(cudaLaunchKernelExC(&config, launch.kernel, launch.arguments), "launching a kernel with attributes");
  }

  cudaStream_t stream_ = nullptr;
  bool owned_ = true;
  std::vector<void*> to_;  // a batch of copies in CUDA's format
  std::vector<const void*> from_;
  std::vector<std::size_t> bytes_;
};

/// Creates an empty graph.
std::unique_ptr<Graph> make_cuda_graph();
/// Creates a graph of the work that `body` queues on a stream.
std::unique_ptr<Graph> capture_cuda_graph(const std::function<void(Stream&)>& body);

}  // namespace feedrate
