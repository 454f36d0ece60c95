#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/device/clock_map.hpp"
#include "common/device/launchable.hpp"
#include "common/device/work.hpp"
#include "common/error.hpp"
#include "common/export.hpp"
#include "common/ring/lane.hpp"

namespace feedrate {

/// Work on messages, in each form that a device can run. `kernels/` generates all forms from one functor.
class Kernel {
 public:
  using KernelRecorder = NoRecorder;  ///< the recorder of its kernels; a derived interface may use another type

  virtual ~Kernel() = default;
  virtual void run_on_cpu(const BatchView&) const = 0;
  /// Calls `use` with the launch for a batch, or not at all if there is nothing to do. Throws Failure.
  virtual void with_cuda_launch(const BatchView&, unsigned block, const UseCudaLaunch& use) const = 0;
  /// Starts one block per lane, which serves the lane until the lane is stopped or has been idle for too long. `lanes`
  /// must be in memory that the device can access.
  virtual void launch_resident_on_cuda(std::span<const LaneView> lanes, const ResidentShape&, void* stream) const = 0;
  /// Number of blocks of the resident form that run concurrently on this GPU; 0 on machines without a GPU.
  virtual unsigned resident_blocks_that_fit(const ResidentShape&) const = 0;
};

/// A message kernel that has no resident form on a GPU.
class LaunchedKernel : public Kernel {
 public:
  void launch_resident_on_cuda(std::span<const LaneView>, const ResidentShape&, void*) const final {
    throw Failure("this kernel has no resident form");
  }
  unsigned resident_blocks_that_fit(const ResidentShape&) const final { return 0; }
};

/// The launch of a kernel for one batch of messages. The kernel must outlive this object.
class BatchLaunch final : public Launchable {
 public:
  BatchLaunch(const Kernel& kernel, const BatchView& batch, unsigned block)
      : kernel_(kernel), batch_(batch), block_(block) {}
  void with_cuda_launch(const UseCudaLaunch& use) const override { kernel_.with_cuda_launch(batch_, block_, use); }
  std::function<void()> on_cpu() const override {
    return [&kernel = kernel_, batch = batch_] { kernel.run_on_cpu(batch); };
  }

 private:
  const Kernel& kernel_;
  const BatchView& batch_;
  unsigned block_;
};

enum class Access { read_write, read_only };  ///< what a device may do with pinned memory of the process
enum class HostMemory { pageable, pinned };   ///< pinned memory is also mapped: the device may use its address

/// Owned bytes, freed by the function given at construction.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::byte* data, std::size_t size, std::function<void(std::byte*)> free)
      : data_(data, std::move(free)), size_(size) {}
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte, std::function<void(std::byte*)>> data_;
  std::size_t size_ = 0;
};

/// A point in a stream that the host can query without waiting.
class Event {
 public:
  virtual ~Event() = default;
  /// Whether the event's last recording has been reached; an event that was never recorded is ready.
  virtual bool ready() = 0;
  /// Time at which the event became ready, in ns of the device's clock. 0 if the event is not timed or that clock has
  /// not been read yet (Device::read_clock).
  virtual std::uint64_t ready_ns() { return 0; }
  /// Nanoseconds from `earlier` to this event. Both must be ready timed events of the same device. Works even if the
  /// clock has not been read.
  virtual double ns_since(const Event& earlier) const = 0;
};

struct Copy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};
enum class Direction { to_device, to_host };

/// A sequence of work that runs in order, asynchronously with respect to the host. Every call throws Failure if the
/// device reports an error.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) = 0;
  virtual void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) = 0;
  /// Queues copies that may run in any order relative to each other, with one call if the device supports that
  /// (`Device::copies_in_batches`).
  virtual void copy_batch(std::span<const Copy>, Direction) = 0;
  /// Copies between the memories of two devices.
  virtual void copy_to_peer(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void launch(const Launchable&) = 0;
  /// Like `launch`, but the kernel may begin before earlier work in the stream has ended, and waits for that work
  /// itself (CUDA: programmatic dependent launch). If the device does not support this, the call is the same as
  /// `launch`.
  virtual void launch_early(const Launchable& launchable) { launch(launchable); }
  void launch(const Kernel& kernel, const BatchView& batch, unsigned block) {
    launch(BatchLaunch(kernel, batch, block));
  }
  /// Sets each byte of a range of device memory to `value`.
  virtual void fill(std::byte* device, unsigned char value, std::size_t bytes) = 0;
  /// Allocates device memory in stream order: the memory becomes valid when the work queued before this call is done,
  /// and invalid when the work queued before `free` is done.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte*) = 0;
  /// Writes one word of device memory, after the results of all earlier work in the stream have arrived there.
  virtual void write_word(std::uint64_t* device, std::uint64_t value) = 0;
  /// Records `event`: it becomes ready when all earlier work in the stream is done. The event must belong to the same
  /// device.
  virtual void record(Event& event) = 0;
  /// Makes later work in the stream wait for the last recording of `event` before this call. An event that was never
  /// recorded causes no wait.
  virtual void wait(Event& event) = 0;
  virtual void synchronize() = 0;
};

/// Copies and kernels with dependencies, all queued by one call. The graph is built node by node; each `add` lists the
/// nodes that must finish first. Between two launches, nodes may be given new addresses or be left out; unchanged nodes
/// cost nothing. Launches in flight are not affected. Throws Failure if the device reports an error.
class Graph {
 public:
  using Node = std::size_t;
  virtual ~Graph() = default;
  virtual Node add(const Copy&, Direction, std::span<const Node> after) = 0;
  virtual Node add(const Kernel&, const BatchView&, unsigned block, std::span<const Node> after) = 0;
  virtual Node add(const Launchable&, std::span<const Node> after) = 0;
  virtual void change(Node, const Copy&) = 0;
  virtual void change(Node, const BatchView&) = 0;
  /// Leaves a node out, or includes it again. A node that is left out takes no time; the nodes after it still wait for
  /// the nodes before it.
  virtual void set_excluded(Node, bool) = 0;
  /// Queues the graph. After the first launch no more nodes can be added.
  virtual void launch(Stream&) = 0;
};

/// Pollers that serve lanes until the lanes are stopped or the pollers leave. The destructor waits for the pollers to
/// end, so stop the lanes first.
class Resident {
 public:
  virtual ~Resident() = default;
  /// Returns true until the pollers of every lane have left. Throws Failure if the pollers failed.
  virtual bool running() = 0;
  virtual unsigned host_threads() const = 0;
};

struct DeviceInfo {
  std::string kind;                       ///< "cuda" or "cpu"
  std::string name;                       ///< "NVIDIA H200", or the CPU's model
  unsigned processors;                    ///< SMs, or cores
  std::size_t memory;                     ///< total memory in bytes
  std::string pci_bus;                    ///< empty on the CPU
  std::string cuda_driver, cuda_runtime;  ///< "13.0"; empty on the CPU
  unsigned index = 0;                     ///< index of a GPU, as for open_device()
  unsigned capability = 0;                ///< 90 for compute capability 9.0; 0 on the CPU
  std::size_t cache = 0;                  ///< bytes of the L2 or of the CPU's last-level cache; 0 if unknown
};

/// Contents of fresh device memory: kPoison in each byte or, for allocations inside timed code, the previous contents.
enum class Fresh { poisoned, as_is };

/// A device that runs work: `cuda` maps one-to-one to the CUDA runtime; `cpu` uses threads, with the same ordering and
/// asynchrony. Transfers are written once, against this interface.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view kind() const = 0;
  virtual DeviceInfo info() const = 0;
  virtual Buffer allocate_host(std::size_t bytes, HostMemory) = 0;  ///< zeroed
  virtual Buffer allocate_device(std::size_t bytes, Fresh = Fresh::poisoned) = 0;
  /// Pins page-aligned host memory that the process already has. The memory stays pinned until the buffer is destroyed;
  /// the buffer does not free it. A mapping that the process may only read must be pinned as read_only.
  virtual Buffer pin(std::byte* data, std::size_t bytes, Access = Access::read_write) = 0;
  /// How long this device takes to read each page of its pinned memory, in cycles; all equal on the CPU. Runs a short
  /// kernel and waits for it, so not while a Resident runs. The first 16 bytes of each page are zero afterwards.
  virtual std::vector<std::uint32_t> page_read_cycles(std::span<std::byte> pinned, std::size_t page_bytes) {
    return std::vector<std::uint32_t>(pinned.size() / page_bytes);
  }
  virtual std::unique_ptr<Stream> stream() = 0;
  virtual std::unique_ptr<Event> event(bool timed = false) = 0;
  virtual std::unique_ptr<Graph> graph() = 0;
  /// Captures the work that `body` queues on the given stream, as one graph without named nodes. `body` may only queue
  /// copies, fills and kernels; it must not wait, and must not use any other stream.
  virtual std::unique_ptr<Graph> capture(const std::function<void(Stream&)>& body) = 0;
  /// Resources that the compiled kernel uses; none on the CPU, whose kernels are functions. Throws Failure if the
  /// kernel was not compiled for this GPU.
  virtual std::optional<KernelResources> resources(const Launchable&) = 0;
  /// Whether `Stream::copy_batch` is a single call.
  virtual bool copies_in_batches() const = 0;
  /// Gives this device's kernels access to the other device's memory. Returns the reason if that is not possible,
  /// otherwise an empty string.
  virtual std::string enable_peer_access(Device& other) = 0;
  /// Compares the device's clock with the host's. Takes a few milliseconds, and works only while no Resident runs.
  virtual ClockReading read_clock() = 0;
  /// Maximum number of lanes that can be served at once.
  virtual unsigned max_lanes(const Kernel&, const ResidentShape&) = 0;
  /// Starts pollers on `lanes`. While a Resident runs, any call that waits for the entire device never returns. So do
  /// not free memory, synchronize the device, or launch a kernel that is not yet loaded (feedrate/ring.hpp has the
  /// list). Allocate all memory before this call; debug builds throw if this Device allocates memory while a Resident
  /// runs.
  virtual std::unique_ptr<Resident> start_resident(const Kernel&, std::span<const LaneView> lanes,
                                                   const ResidentShape&) = 0;
  /// Must be called by each new thread before it uses the device.
  virtual void use_in_this_thread() {}
  /// Starts or ends the capture range of an attached profiler (`--capture-range=cudaProfilerApi` in Nsight Systems).
  virtual void profile(bool /*on*/) {}
};

/// Value of each byte of fresh device memory, so that data from an earlier run cannot be mistaken for a result.
inline constexpr int kPoison = 0xA5;

/// Returns why the `cuda` device cannot be used here (no driver, no GPU, a build without CUDA); empty if it can.
FEEDRATE_EXPORT std::string cuda_unavailable();
/// Number of GPUs visible to this process; 0 if CUDA cannot be used here.
FEEDRATE_EXPORT unsigned gpu_count();
/// Opens a device; `kind` is `cuda`, `cpu` or `auto` (`cuda` if there is a GPU). Throws BadInput naming `--device`.
FEEDRATE_EXPORT std::unique_ptr<Device> open_device(const std::string& kind, unsigned index = 0);
/// Describes the device that open_device() would open, without opening it: creates no context and allocates no GPU
/// memory.
FEEDRATE_EXPORT DeviceInfo describe_device(const std::string& kind, unsigned index = 0);
/// Index of the first GPU other than `device`, as for open_device(); none if there is no other GPU or `device` is a
/// CPU.
std::optional<unsigned> other_gpu(Device& device);
std::string cpu_model();

FEEDRATE_EXPORT std::unique_ptr<Device> open_cpu_device();
FEEDRATE_EXPORT std::unique_ptr<Device> open_cuda_device(unsigned index);
DeviceInfo describe_cpu();
DeviceInfo describe_gpu(unsigned index);

}  // namespace feedrate
