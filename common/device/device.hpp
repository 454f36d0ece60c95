#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/device/clock_map.hpp"
#include "common/device/work.hpp"
#include "common/export.hpp"
#include "common/ring/lane.hpp"

namespace feedrate {

/// Work that a device can run, in each of its forms. `kernels/` makes them all from one functor.
class Kernel {
 public:
  using KernelMarks =
      NoMarks;  ///< what its kernels note of messages; an interface that adds to Kernel may have another

  virtual ~Kernel() = default;
  virtual void run_on_cpu(const BatchView&) const = 0;
  /// `stream` is a cudaStream_t. Throws Failure.
  virtual void launch_on_cuda(const BatchView&, unsigned block, void* stream) const = 0;
  /// One block per lane serves it until it is stopped, or leaves for idleness. `lanes` lie in memory that the device
  /// can reach.
  virtual void launch_resident_on_cuda(std::span<const LaneView> lanes, const ResidentShape&, void* stream) const = 0;
  /// How many blocks of the resident form run at once on this GPU; 0 on machines without.
  virtual unsigned resident_blocks_that_fit(const ResidentShape&) const = 0;
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
  virtual bool ready() = 0;
  /// When it became ready, in ns of the device's clock; 0 unless it was made to be timed.
  virtual std::uint64_t ready_ns() { return 0; }
};

/// Work in order, asynchronous to the host. Every call throws Failure when the device refuses.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void copy_to_device(std::byte* device, const std::byte* host, std::size_t bytes) = 0;
  virtual void copy_to_host(std::byte* host, const std::byte* device, std::size_t bytes) = 0;
  virtual void launch(const Kernel&, const BatchView&, unsigned block) = 0;
  /// Writes one word of the device's memory, after all that was queued before has arrived there.
  virtual void write_word(std::uint64_t* device, std::uint64_t value) = 0;
  /// `event` becomes ready when all that was queued before is done. It must come from the same device.
  virtual void record(Event& event) = 0;
  virtual void synchronize() = 0;
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
  std::string name;                       ///< "NVIDIA H200", or the CPU's model
  unsigned processors;                    ///< SMs, or cores
  std::size_t memory;                     ///< bytes
  std::string pci_bus;                    ///< empty on the CPU
  std::string cuda_driver, cuda_runtime;  ///< "13.0"; empty on the CPU
};

/// Where work runs: `cuda`, one-to-one over the runtime, or `cpu`, which keeps the same order and asynchrony with
/// threads. Transfers and floors are written once against it.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view kind() const = 0;
  virtual DeviceInfo info() const = 0;
  virtual Buffer allocate_host(std::size_t bytes, HostMemory) = 0;  ///< zeroed
  virtual Buffer allocate_device(std::size_t bytes) = 0;            ///< filled with kPoison
  virtual std::unique_ptr<Stream> stream() = 0;
  virtual std::unique_ptr<Event> event(bool timed = false) = 0;
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
/// `kind` is `cuda`, `cpu` or `auto` (cuda where there is a GPU). Throws BadInput, naming `--device`.
FEEDRATE_EXPORT std::unique_ptr<Device> open_device(const std::string& kind, unsigned index = 0);
std::string cpu_model();

FEEDRATE_EXPORT std::unique_ptr<Device> open_cpu_device();
FEEDRATE_EXPORT std::unique_ptr<Device> open_cuda_device(unsigned index);

}  // namespace feedrate
