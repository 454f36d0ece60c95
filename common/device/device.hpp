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

/// Work on messages that a device can run, in each of its forms. `kernels/` makes them all from one functor.
class Kernel {
 public:
  using KernelMarks =
      NoMarks;  ///< what its kernels note of messages; an interface that adds to Kernel may have another

  virtual ~Kernel() = default;
  virtual void run_on_cpu(const BatchView&) const = 0;
  /// Tells `use` what to launch for a batch; never calls it when there is nothing to do. Throws Failure.
  virtual void with_cuda_launch(const BatchView&, unsigned block, const UseCudaLaunch& use) const = 0;
  /// One block per lane serves it until it is stopped, or leaves for idleness. `lanes` lie in memory that the device
  /// can reach.
  virtual void launch_resident_on_cuda(std::span<const LaneView> lanes, const ResidentShape&, void* stream) const = 0;
  /// How many blocks of the resident form run at once on this GPU; 0 on machines without.
  virtual unsigned resident_blocks_that_fit(const ResidentShape&) const = 0;
};

/// A kernel of messages without a resident form on a GPU.
class LaunchedKernel : public Kernel {
 public:
  void launch_resident_on_cuda(std::span<const LaneView>, const ResidentShape&, void*) const final {
    throw Failure("this kernel has no resident form");
  }
  unsigned resident_blocks_that_fit(const ResidentShape&) const final { return 0; }
};

/// A kernel's launch for one batch of messages. The kernel outlives it.
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

enum class HostMemory { pageable, pinned };  ///< pinned memory is mapped too: the device may use its address

/// Owned bytes, freed by whoever allocated them.
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

/// A point in a stream that the host can ask about without waiting.
class Event {
 public:
  virtual ~Event() = default;
  /// Whether it is, as it was last recorded; one that never was is ready.
  virtual bool ready() = 0;
  /// When it became ready, in ns of the device's clock; 0 unless it was made to be timed, and after a reading of that
  /// clock (Device::read_clock).
  virtual std::uint64_t ready_ns() { return 0; }
  /// Nanoseconds from one timed event of the same device to this one; both are ready. Needs no reading of the clock.
  virtual double ns_since(const Event& earlier) const = 0;
};

struct Copy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};
enum class Direction { to_device, to_host };

/// Work in order, asynchronous to the host. Every call throws Failure when the device refuses.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) = 0;
  virtual void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) = 0;
  /// Copies that may happen in any order among themselves, by one call where the device has such a call
  /// (`Device::copies_in_batches`).
  virtual void copy_batch(std::span<const Copy>, Direction) = 0;
  /// Between the memories of two devices.
  virtual void copy_to_peer(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void launch(const Launchable&) = 0;
  /// The same, but the kernel may begin before what was queued before has ended: it waits for that itself. (CUDA:
  /// programmatic dependent launch.) Where a device has no such thing, this is `launch`.
  virtual void launch_early(const Launchable& launchable) { launch(launchable); }
  void launch(const Kernel& kernel, const BatchView& batch, unsigned block) {
    launch(BatchLaunch(kernel, batch, block));
  }
  /// Sets each byte of device memory.
  virtual void fill(std::byte* device, unsigned char value, std::size_t bytes) = 0;
  /// Memory of the device, from when what was queued before is done until what is queued before `free`.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte*) = 0;
  /// Writes one word of the device's memory, after all that was queued before has arrived there.
  virtual void write_word(std::uint64_t* device, std::uint64_t value) = 0;
  /// `event` becomes ready when all that was queued before is done. It must come from the same device.
  virtual void record(Event& event) = 0;
  /// What is queued from now on begins when `event` is ready, as it was last recorded before this call. An event that
  /// was never recorded is not waited for.
  virtual void wait(Event& event) = 0;
  virtual void synchronize() = 0;
};

/// Copies and kernels with an order among them, which one call queues. It is built node by node; each call names the
/// nodes that must be done before. Between two launches addresses may change, and nodes be left out; what is as it was
/// costs nothing. What is still under way is not touched by that. Throws Failure when the device refuses.
class Graph {
 public:
  using Node = std::size_t;
  virtual ~Graph() = default;
  virtual Node add(const Copy&, Direction, std::span<const Node> after) = 0;
  virtual Node add(const Kernel&, const BatchView&, unsigned block, std::span<const Node> after) = 0;
  virtual Node add(const Launchable&, std::span<const Node> after) = 0;
  virtual void change(Node, const Copy&) = 0;
  virtual void change(Node, const BatchView&) = 0;
  /// A node that is left out takes no time; those behind it still wait for those before it.
  virtual void leave_out(Node, bool) = 0;
  /// Queues all of it. Nodes can no longer be added.
  virtual void launch(Stream&) = 0;
};

/// Pollers that serve lanes until these are stopped or left. Destroying this waits for the end, so stop the lanes
/// first.
class Resident {
 public:
  virtual ~Resident() = default;
  /// True until every lane's pollers have gone. Throws Failure when they broke.
  virtual bool running() = 0;
  virtual unsigned host_threads() const = 0;
};

struct DeviceInfo {
  std::string kind;                       ///< cuda or cpu
  std::string name;                       ///< "NVIDIA H200", or the CPU's model
  unsigned processors;                    ///< SMs, or cores
  std::size_t memory;                     ///< bytes
  std::string pci_bus;                    ///< empty on the CPU
  std::string cuda_driver, cuda_runtime;  ///< "13.0"; empty on the CPU
  unsigned index = 0;                     ///< of a GPU, as open_device() counts
  unsigned capability = 0;                ///< 90 for compute capability 9.0; 0 on the CPU
  std::size_t cache = 0;                  ///< bytes of the L2, or of the CPU's last-level cache; 0 if unknown
};

/// What fresh device memory holds: kPoison in each byte, or what was there before, where filling it would be timed.
enum class Fresh { poisoned, as_is };

/// Where work runs: `cuda`, one-to-one over the runtime, or `cpu`, which keeps the same order and asynchrony with
/// threads. Transfers are written once against it.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view kind() const = 0;
  virtual DeviceInfo info() const = 0;
  virtual Buffer allocate_host(std::size_t bytes, HostMemory) = 0;  ///< zeroed
  virtual Buffer allocate_device(std::size_t bytes, Fresh = Fresh::poisoned) = 0;
  /// Host memory that the process has from elsewhere, from the start of a page on: pinned until the buffer ends, which
  /// frees nothing.
  virtual Buffer pin(std::byte* data, std::size_t bytes) = 0;
  virtual std::unique_ptr<Stream> stream() = 0;
  virtual std::unique_ptr<Event> event(bool timed = false) = 0;
  virtual std::unique_ptr<Graph> graph() = 0;
  /// All that `body` queues on the stream it is given, as one graph, whose nodes have no names. `body` queues
  /// copies, fills and kernels, waits for nothing, and uses no other stream.
  virtual std::unique_ptr<Graph> capture(const std::function<void(Stream&)>& body) = 0;
  /// What the compiled kernel takes; none on the CPU, whose kernels are functions. Throws Failure if this GPU has no
  /// code of it.
  virtual std::optional<KernelResources> resources(const Launchable&) = 0;
  /// Whether `Stream::copy_batch` is one call.
  virtual bool copies_in_batches() const = 0;
  /// Why this device's kernels can't read the other one's memory; empty when they can, from then on.
  virtual std::string reach_peer(Device& other) = 0;
  /// Sets the device's clock beside the host's; takes some milliseconds, and only works while nothing is resident.
  virtual ClockReading read_clock() = 0;
  /// The most lanes that can be served at once.
  virtual unsigned most_lanes(const Kernel&, const ResidentShape&) = 0;
  /// While a Resident runs, nothing may wait for the device as a whole, or it waits for ever: nothing is freed, the
  /// device is not synchronized, and no kernel is launched that is not loaded yet (feedrate/ring.hpp has the list). So
  /// whoever starts one has allocated everything before. Debug builds throw where this Device is asked for memory
  /// meanwhile.
  virtual std::unique_ptr<Resident> start_resident(const Kernel&, std::span<const LaneView> lanes,
                                                   const ResidentShape&) = 0;
  /// To be called by each new thread that will use the device.
  virtual void use_in_this_thread() {}
  /// Starts or ends what an attached profiler captures (`--capture-range=cudaProfilerApi` of Nsight Systems).
  virtual void profile(bool /*on*/) {}
};

/// What each byte of fresh device memory holds, so that nothing an earlier run left there can pass for a result.
inline constexpr int kPoison = 0xA5;

/// Why the `cuda` device can't be used here (no driver, no GPU, a build without CUDA); empty when it can.
FEEDRATE_EXPORT std::string cuda_unavailable();
/// GPUs that this process sees; 0 if CUDA can't be used here.
FEEDRATE_EXPORT unsigned gpu_count();
/// `kind` is `cuda`, `cpu` or `auto` (cuda where there is a GPU). Throws BadInput, naming `--device`.
FEEDRATE_EXPORT std::unique_ptr<Device> open_device(const std::string& kind, unsigned index = 0);
/// What open_device() would open, without opening it: no context is made, no memory of a GPU is taken.
FEEDRATE_EXPORT DeviceInfo describe_device(const std::string& kind, unsigned index = 0);
/// The first GPU that is not this device, as open_device() counts; none where there is no other, or this is a CPU.
std::optional<unsigned> other_gpu(Device& device);
std::string cpu_model();

FEEDRATE_EXPORT std::unique_ptr<Device> open_cpu_device();
FEEDRATE_EXPORT std::unique_ptr<Device> open_cuda_device(unsigned index);
DeviceInfo describe_cpu();
DeviceInfo describe_gpu(unsigned index);

}  // namespace feedrate
