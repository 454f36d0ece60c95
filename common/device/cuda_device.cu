#include <cuda.h>
#include <cuda_profiler_api.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "common/device/cuda_check.hpp"
#include "common/device/cuda_clock.hpp"
#include "common/device/device.hpp"

namespace feedrate {
namespace {

/// A kernel that is loaded at its first launch waits for resident ones to end; so all are loaded with the context. The
/// driver reads this once, at the process's first call of CUDA.
void load_eagerly() { setenv("CUDA_MODULE_LOADING", "EAGER", 0); }

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

/// Whether this build knows cudaMemcpyBatchAsync, in the form that it has from CUDA 13 on, and the driver at hand, too.
bool has_batched_copies() {
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

/// From the driver, because the runtime has no such call.
auto stream_write_value() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry, 12000, cudaEnableDefault, &found),
        "looking up cuStreamWriteValue64");
  if (found != cudaDriverEntryPointSuccess) throw Failure("this driver has no cuStreamWriteValue64");
  return reinterpret_cast<decltype(&cuStreamWriteValue64)>(entry);
}

dim3 dim3_of(const Extent& extent) { return {extent.x, extent.y, extent.z}; }

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
    // Both addresses say which GPU they are of.
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
    // Without flags the write comes after a fence: what was queued before it is there when the word is.
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
  /// With attributes: of a kernel in clusters, or one that may begin early.
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
  std::vector<void*> to_;  // a batch of copies, as CUDA wants it
  std::vector<const void*> from_;
  std::vector<std::size_t> bytes_;
};

class CudaGraph final : public Graph {
 public:
  CudaGraph() { check(cudaGraphCreate(&graph_, 0), "cudaGraphCreate"); }
  /// Takes a graph over.
  explicit CudaGraph(cudaGraph_t graph) : graph_(graph) {}
  ~CudaGraph() override {
    if (ready_ != nullptr) cudaGraphExecDestroy(ready_);
    cudaGraphDestroy(graph_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  Node add(const Copy& copy, Direction direction, std::span<const Node> after) override {
    const auto before = handles(after);
    const auto kind = direction == Direction::to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    Work work{.copy = copy, .kind = kind};
    check(cudaGraphAddMemcpyNode1D(&work.node, graph_, before.data(), before.size(), copy.to, copy.from, copy.bytes,
                                   kind),
          "cudaGraphAddMemcpyNode1D");
    return keep(work);
  }
  Node add(const Kernel& kernel, const BatchView& batch, unsigned block, std::span<const Node> after) override {
    const auto before = handles(after);
    Work work{.kernel = &kernel, .batch = batch, .block = block};
    kernel.with_cuda_launch(batch, block, [&](const CudaLaunch& launch) {
      const cudaKernelNodeParams parameters = parameters_of(launch);
      check(cudaGraphAddKernelNode(&work.node, graph_, before.data(), before.size(), &parameters),
            "cudaGraphAddKernelNode");
    });
    return keep(work);
  }
  Node add(const Launchable& launchable, std::span<const Node> after) override {
    const auto before = handles(after);
    Work work{};
    launchable.with_cuda_launch([&](const CudaLaunch& launch) {
      if (launch.cluster.size() != 1) throw Failure("a kernel in clusters as a node of a graph: capture it");
      const cudaKernelNodeParams parameters = parameters_of(launch);
      check(cudaGraphAddKernelNode(&work.node, graph_, before.data(), before.size(), &parameters),
            "cudaGraphAddKernelNode");
    });
    return keep(work);
  }
  void change(Node node, const Copy& copy) override {
    Work& work = nodes_.at(node);
    const Copy& old = work.copy;
    if (old.to == copy.to && old.from == copy.from && old.bytes == copy.bytes) return;
    check(cudaGraphExecMemcpyNodeSetParams1D(ready(), work.node, copy.to, copy.from, copy.bytes, work.kind),
          "cudaGraphExecMemcpyNodeSetParams1D");
    work.copy = copy;
  }
  void change(Node node, const BatchView& batch) override {
    Work& work = nodes_.at(node);
    if (std::memcmp(&work.batch, &batch, sizeof batch) == 0) return;  // at worst padding differs, and it is told again
    if (work.kernel == nullptr) throw Failure("this node of a graph works on no messages");
    work.kernel->with_cuda_launch(batch, work.block, [&](const CudaLaunch& launch) {
      const cudaKernelNodeParams parameters = parameters_of(launch);
      check(cudaGraphExecKernelNodeSetParams(ready(), work.node, &parameters), "cudaGraphExecKernelNodeSetParams");
    });
    std::memcpy(&work.batch, &batch, sizeof batch);
  }
  void leave_out(Node node, bool left_out) override {
    Work& work = nodes_.at(node);
    if (work.left_out == left_out) return;
    check(cudaGraphNodeSetEnabled(ready(), work.node, left_out ? 0 : 1), "cudaGraphNodeSetEnabled");
    work.left_out = left_out;
  }
  void launch(Stream& stream) override {
    check(cudaGraphLaunch(ready(), dynamic_cast<CudaStream&>(stream).get()), "cudaGraphLaunch");
  }

 private:
  struct Work {
    cudaGraphNode_t node = nullptr;
    Copy copy = {};
    cudaMemcpyKind kind = cudaMemcpyDefault;
    const Kernel* kernel = nullptr;
    BatchView batch = {};
    unsigned block = 0;
    bool left_out = false;
  };
  static cudaKernelNodeParams parameters_of(const CudaLaunch& launch) {
    cudaKernelNodeParams parameters{};
    parameters.func = const_cast<void*>(launch.kernel);
    parameters.gridDim = dim3_of(launch.grid);
    parameters.blockDim = dim3_of(launch.block);
    parameters.sharedMemBytes = launch.shared_bytes;
    parameters.kernelParams = launch.arguments;
    return parameters;
  }
  std::vector<cudaGraphNode_t> handles(std::span<const Node> nodes) const {
    std::vector<cudaGraphNode_t> found;
    for (const Node node : nodes) found.push_back(nodes_.at(node).node);
    return found;
  }
  Node keep(const Work& work) {
    if (ready_ != nullptr) throw Failure("a graph that is in use takes no further node");
    nodes_.push_back(work);
    return nodes_.size() - 1;
  }
  cudaGraphExec_t ready() {
    if (ready_ == nullptr) check(cudaGraphInstantiate(&ready_, graph_, 0), "cudaGraphInstantiate");
    return ready_;
  }

  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
  std::vector<Work> nodes_;
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
  explicit CudaDevice(unsigned index) : index_(static_cast<int>(index)), info_(describe_gpu(index)) {
    check(cudaSetDevice(index_), "cudaSetDevice");
    check(cudaFree(nullptr), "creating the CUDA context");
    clock_.emplace();
  }
  std::string_view kind() const override { return "cuda"; }
  DeviceInfo info() const override { return info_; }
  Buffer allocate_host(std::size_t bytes, HostMemory memory) override {
    if (memory == HostMemory::pageable) return cpu_->allocate_host(bytes, memory);
    refuse_while_resident();
    void* data = nullptr;
    check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
    std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), bytes, [](std::byte* p) { cudaFreeHost(p); }};
  }
  Buffer allocate_device(std::size_t bytes, Fresh fresh) override {
    refuse_while_resident();
    void* data = nullptr;
    check(cudaMalloc(&data, bytes), "cudaMalloc");
    Buffer buffer{static_cast<std::byte*>(data), bytes, [](std::byte* p) { cudaFree(p); }};
    if (fresh == Fresh::as_is) return buffer;
    check(cudaMemset(data, kPoison, bytes), "cudaMemset");
    check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");  // other streams do not wait for it
    return buffer;
  }
  Buffer pin(std::byte* data, std::size_t bytes) override {
    check(cudaHostRegister(data, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped), "cudaHostRegister");
    return {data, bytes, [](std::byte* p) { cudaHostUnregister(p); }};
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<CudaStream>(); }
  std::unique_ptr<Event> event(bool timed) override { return std::make_unique<CudaEvent>(timed ? &*clock_ : nullptr); }
  std::unique_ptr<Graph> graph() override { return std::make_unique<CudaGraph>(); }
  std::unique_ptr<Graph> capture(const std::function<void(Stream&)>& body) override {
    CudaStream stream;
    check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      body(stream);
    } catch (...) {
      cudaStreamEndCapture(stream.get(), &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      static_cast<void>(cudaGetLastError());  // else the next check of a launch would find it
      throw;
    }
    check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
    return std::make_unique<CudaGraph>(graph);
  }
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
  std::string reach_peer(Device& other) override {
    const auto* const peer = dynamic_cast<const CudaDevice*>(&other);
    if (peer == nullptr) return "a GPU's kernels don't read another device's memory";
    int possible = 0;
    check(cudaDeviceCanAccessPeer(&possible, index_, peer->index_), "cudaDeviceCanAccessPeer");
    if (possible == 0)
      return "GPU " + std::to_string(index_) + " can't reach the memory of GPU " + std::to_string(peer->index_);
    check(cudaSetDevice(index_), "cudaSetDevice");
    const cudaError_t enabled = cudaDeviceEnablePeerAccess(peer->index_, 0);
    if (enabled == cudaErrorPeerAccessAlreadyEnabled) {
      static_cast<void>(cudaGetLastError());  // else the next check of a launch would find it
      return "";
    }
    check(enabled, "cudaDeviceEnablePeerAccess");
    return "";
  }
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
        "allowing a kernel its shared memory");
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
