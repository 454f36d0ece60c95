#include <cuda_profiler_api.h>

#include <array>
#include <cstring>

#include "common/device/cuda_check.hpp"
#include "common/device/device.hpp"

namespace feedrate {
namespace {

class CudaEvent final : public Event {
 public:
  CudaEvent() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  bool ready() override {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state, "cudaEventQuery");
    return true;
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  // Non-blocking: it must never wait for the legacy stream, which waits for everything.
  CudaStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~CudaStream() override {
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
  void launch(const Kernel& kernel, const BatchView& batch, unsigned block) override {
    kernel.launch_on_cuda(batch, block, stream_);
  }
  void record(Event& event) override {
    check(cudaEventRecord(dynamic_cast<CudaEvent&>(event).get(), stream_), "cudaEventRecord");
  }
  void synchronize() override { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaResident final : public Resident {
 public:
  // Long enough for any pause of a healthy driver, short enough to give the GPU back soon after the host has died.
  static constexpr std::uint64_t kIdleLimitNs = 30'000'000'000;

  CudaResident(const Kernel& kernel, std::span<const RingView> rings, unsigned block) {
    kernel.launch_resident_on_cuda(rings, block, kIdleLimitNs, stream_.get());
    stream_.record(event_);
  }
  bool running() override { return !event_.ready(); }
  unsigned host_threads() const override { return 0; }

 private:
  CudaEvent event_;
  CudaStream stream_;  // destroyed first: waits for the kernel's end
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(unsigned index) : index_(static_cast<int>(index)) {
    check(cudaSetDevice(index_), "cudaSetDevice");
    check(cudaFree(nullptr), "creating the CUDA context");
  }
  std::string_view kind() const override { return "cuda"; }
  DeviceInfo info() const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    const auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
    std::array<char, 32> bus{};
    check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index_), "cudaDeviceGetPCIBusId");
    return {properties.name,           static_cast<unsigned>(properties.multiProcessorCount),
            properties.totalGlobalMem, bus.data(),
            version(driver),           version(runtime)};
  }
  Buffer allocate_host(std::size_t bytes, HostMemory memory) override {
    if (memory == HostMemory::pageable) return cpu_->allocate_host(bytes, memory);
    void* data = nullptr;
    check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
    std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), bytes, [](std::byte* p) { cudaFreeHost(p); }};
  }
  Buffer allocate_device(std::size_t bytes) override {
    void* data = nullptr;
    check(cudaMalloc(&data, bytes), "cudaMalloc");
    return {static_cast<std::byte*>(data), bytes, [](std::byte* p) { cudaFree(p); }};
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<CudaStream>(); }
  std::unique_ptr<Event> event() override { return std::make_unique<CudaEvent>(); }
  unsigned most_rings(const Kernel& kernel, unsigned block) override { return kernel.resident_blocks_that_fit(block); }
  std::unique_ptr<Resident> start_resident(const Kernel& kernel, std::span<const RingView> rings,
                                           unsigned block) override {
    return std::make_unique<CudaResident>(kernel, rings, block);
  }
  void profile(bool on) override {
    check(on ? cudaProfilerStart() : cudaProfilerStop(), "starting or stopping the profiler's capture");
  }
  void use_in_this_thread() override { check(cudaSetDevice(index_), "cudaSetDevice"); }

 private:
  int index_;
  std::unique_ptr<Device> cpu_ = open_cpu_device();
};

}  // namespace

std::string cuda_unavailable() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return std::string("no usable GPU: ") + cudaGetErrorString(error);
  return count == 0 ? "no GPU on this machine" : "";
}

std::unique_ptr<Device> open_cuda_device(unsigned index) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (index >= static_cast<unsigned>(count)) {
    throw BadInput("--gpu", std::to_string(index), "0 to " + std::to_string(count - 1));
  }
  return std::make_unique<CudaDevice>(index);
}

}  // namespace feedrate
