#include <cuda_profiler_api.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "common/device/cuda_pages.hpp"
#include "common/device/cuda_stream.hpp"

namespace feedrate {
namespace {

/// Makes CUDA load all kernels when it creates the context. A kernel loaded at its first launch would wait for resident
/// kernels to end. The driver reads the variable once, at the process's first CUDA call.
void load_eagerly() { setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

class CudaResident final : public Resident {
 public:
  /// `alive`: number of residents on the device.
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
  explicit CudaDevice(unsigned index) : index_(static_cast<int>(index)), info_(describe_gpu(index)) {
    check(cudaSetDevice(index_), "cudaSetDevice");
    check(cudaFree(nullptr), "creating the CUDA context");
    clock_.emplace();
  }
  std::string_view kind() const override { return "cuda"; }
  DeviceInfo info() const override { return info_; }
  Buffer allocate_host(std::size_t bytes, HostMemory memory) override {
    if (memory == HostMemory::pageable) return cpu_->allocate_host(bytes, memory);
    reject_while_resident();
    void* data = nullptr;
    check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
    std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), bytes, [](std::byte* p) { cudaFreeHost(p); }};
  }
  Buffer allocate_device(std::size_t bytes, Fresh fresh) override {
    reject_while_resident();
    void* data = nullptr;
    check(cudaMalloc(&data, bytes), "cudaMalloc");
    Buffer buffer{static_cast<std::byte*>(data), bytes, [](std::byte* p) { cudaFree(p); }};
    if (fresh == Fresh::as_is) return buffer;
    check(cudaMemset(data, kPoison, bytes), "cudaMemset");
    check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");  // other streams do not wait for the fill
    return buffer;
  }
  Buffer pin(std::byte* data, std::size_t bytes, Access access) override {
    const unsigned read_only = access == Access::read_only ? cudaHostRegisterReadOnly : 0;
    check(cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped | read_only),
          "cudaHostRegister");
    return {data, bytes, [](std::byte* p) { cudaHostUnregister(p); }};
  }
  std::vector<std::uint32_t> page_read_cycles(std::span<std::byte> pinned, std::size_t page_bytes) override {
    reject_while_resident();
    return cuda_page_read_cycles(pinned.data(), pinned.size() / page_bytes, page_bytes);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<CudaStream>(); }
  std::unique_ptr<Event> event(bool timed) override { return std::make_unique<CudaEvent>(timed ? &*clock_ : nullptr); }
  std::unique_ptr<Graph> graph() override { return make_cuda_graph(); }
  std::unique_ptr<Graph> capture(const std::function<void(Stream&)>& body) override { return capture_cuda_graph(body); }
  std::optional<KernelResources> resources(const Launchable& launchable) override {
    KernelResources found;
    launchable.with_cuda_launch([&](const CudaLaunch& launch) {
      cudaFuncAttributes attributes{};
      check(cudaFuncGetAttributes(&attributes, launch.kernel), "cudaFuncGetAttributes");
      int blocks = 0;
      check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch.kernel, static_cast<int>(launch.block.size()),
                                                          launch.shared_bytes),
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
      found = {static_cast<unsigned>(attributes.numRegs), static_cast<unsigned>(attributes.localSizeBytes),
               static_cast<unsigned>(attributes.sharedSizeBytes) + launch.shared_bytes, static_cast<unsigned>(blocks),
               static_cast<unsigned>(attributes.binaryVersion)};
    });
    return found;
  }
  bool copies_in_batches() const override { return has_batched_copies(); }
  std::string enable_peer_access(Device& other) override {
    const auto* const peer = dynamic_cast<const CudaDevice*>(&other);
    if (peer == nullptr) return "a GPU's kernels cannot read the memory of a device of another kind";
    int possible = 0;
    check(cudaDeviceCanAccessPeer(&possible, index_, peer->index_), "cudaDeviceCanAccessPeer");
    if (possible == 0)
      return "GPU " + std::to_string(index_) + " cannot access the memory of GPU " + std::to_string(peer->index_);
    check(cudaSetDevice(index_), "cudaSetDevice");
    const cudaError_t enabled = cudaDeviceEnablePeerAccess(peer->index_, 0);
    if (enabled == cudaErrorPeerAccessAlreadyEnabled) {
      static_cast<void>(cudaGetLastError());  // otherwise the next check of a launch would report this error
      return "";
    }
    check(enabled, "cudaDeviceEnablePeerAccess");
    return "";
  }
  ClockReading read_clock() override { return clock_->read(); }
  unsigned max_lanes(const Kernel& kernel, const ResidentShape& shape) override {
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
  void reject_while_resident() const {
#ifndef NDEBUG
    if (residents_ != 0) throw Failure("memory allocated while a resident kernel runs: the call may never return");
#endif
  }

  int index_;
  DeviceInfo info_;
  std::atomic<unsigned> residents_{0};
  std::optional<CudaClock> clock_;
  std::unique_ptr<Device> cpu_ = open_cpu_device();
};

}  // namespace

std::string cuda_unavailable() {
  load_eagerly();
  return why_no_gpu();
}

unsigned gpu_count() {
  load_eagerly();
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? static_cast<unsigned>(count) : 0;
}

void allow_shared_memory(const void* kernel, unsigned bytes) {
  constexpr unsigned kAlwaysAllowed = 48 << 10;
  if (bytes <= kAlwaysAllowed) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "raising a kernel's shared-memory limit");
}

DeviceInfo describe_gpu(unsigned index) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) {
    throw BadInput("--device", "cuda", "cpu (" + reason + ")");
  }
  const unsigned count = gpu_count();
  if (index >= count) {
    throw BadInput("--gpu", std::to_string(index), "0 to " + std::to_string(count - 1));
  }
  const int device = static_cast<int>(index);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device), "cudaDeviceGetPCIBusId");
  return {"cuda",
          properties.name,
          static_cast<unsigned>(properties.multiProcessorCount),
          properties.totalGlobalMem,
          bus.data(),
          version(driver),
          version(runtime),
          index,
          static_cast<unsigned>(10 * properties.major + properties.minor),
          static_cast<std::size_t>(properties.l2CacheSize)};
}

std::unique_ptr<Device> open_cuda_device(unsigned index) { return std::make_unique<CudaDevice>(index); }

}  // namespace feedrate
