#include <cuda.h>
#include <cuda_profiler_api.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "common/device/cuda_check.hpp"
#include "common/device/cuda_clock.hpp"
#include "common/device/device.hpp"

namespace feedrate {
namespace {

class CudaEvent final : public Event {
 public:
  /// `clock`: of an event whose time will be asked for.
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
  cudaEvent_t get() const { return event_; }

 private:
  const CudaClock* clock_;
  cudaEvent_t event_ = nullptr;
};

/// From the driver, because the runtime has no such call.
auto stream_write_value() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry, 12000, cudaEnableDefault, &found),
        "looking up cuStreamWriteValue64");
  if (found != cudaDriverEntryPointSuccess) throw Failure("this driver has no cuStreamWriteValue64");
  return reinterpret_cast<decltype(&cuStreamWriteValue64)>(entry);
}

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
  void write_word(std::uint64_t* device, std::uint64_t value) override {
    static const auto write = stream_write_value();
    // Without flags the write comes after a fence: what was queued before it is there when the word is.
    const CUresult result = write(stream_, reinterpret_cast<CUdeviceptr>(device), value, CU_STREAM_WRITE_VALUE_DEFAULT);
    if (result != CUDA_SUCCESS) throw Failure("cuStreamWriteValue64: error " + std::to_string(result));
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
  /// `alive` counts the residents of the device.
  CudaResident(const Kernel& kernel, std::span<const LaneView> lanes, const ResidentShape& shape,
               std::atomic<unsigned>& alive)
      : alive_(alive) {
    kernel.launch_resident_on_cuda(lanes, shape, stream_.get());
    stream_.record(event_);
    ++alive_;
  }
  ~CudaResident() override {
    cudaStreamSynchronize(stream_.get());
    --alive_;
  }
  bool running() override { return !event_.ready(); }
  unsigned host_threads() const override { return 0; }

 private:
  std::atomic<unsigned>& alive_;
  CudaEvent event_;
  CudaStream stream_;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(unsigned index) : index_(static_cast<int>(index)) {
    // A kernel that is loaded at its first launch waits for resident ones to end; so all are loaded now.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    check(cudaSetDevice(index_), "cudaSetDevice");
    check(cudaFree(nullptr), "creating the CUDA context");
    clock_.emplace();
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
    refuse_while_resident();
    void* data = nullptr;
    check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
    std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), bytes, [](std::byte* p) { cudaFreeHost(p); }};
  }
  Buffer allocate_device(std::size_t bytes) override {
    refuse_while_resident();
    void* data = nullptr;
    check(cudaMalloc(&data, bytes), "cudaMalloc");
    Buffer buffer{static_cast<std::byte*>(data), bytes, [](std::byte* p) { cudaFree(p); }};
    check(cudaMemset(data, kPoison, bytes), "cudaMemset");
    check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");  // other streams do not wait for it
    return buffer;
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<CudaStream>(); }
  std::unique_ptr<Event> event(bool timed) override { return std::make_unique<CudaEvent>(timed ? &*clock_ : nullptr); }
  ClockReading read_clock() override { return clock_->read(); }
  unsigned most_lanes(const Kernel& kernel, const ResidentShape& shape) override {
    return kernel.resident_blocks_that_fit(shape);
  }
  std::unique_ptr<Resident> start_resident(const Kernel& kernel, std::span<const LaneView> lanes,
                                           const ResidentShape& shape) override {
    return std::make_unique<CudaResident>(kernel, lanes, shape, residents_);
  }
  void profile(bool on) override {
    check(on ? cudaProfilerStart() : cudaProfilerStop(), "starting or stopping the profiler's capture");
  }
  void use_in_this_thread() override { check(cudaSetDevice(index_), "cudaSetDevice"); }

 private:
  void refuse_while_resident() const {
#ifndef NDEBUG
    if (residents_ != 0)
      throw Failure("memory asked of the device while a resident kernel runs: that may never return");
#endif
  }

  int index_;
  std::atomic<unsigned> residents_{0};
  std::optional<CudaClock> clock_;
  std::unique_ptr<Device> cpu_ = open_cpu_device();
};

}  // namespace

std::string cuda_unavailable() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    // Without any driver the runtime calls its version, 0, insufficient.
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess && version == 0) return "no NVIDIA driver on this machine";
  }
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
