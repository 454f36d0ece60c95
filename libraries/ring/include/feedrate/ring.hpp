#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/device/device.hpp"
#include "common/error.hpp"
#include "common/export.hpp"
#include "common/message/message.hpp"
#include "common/ring/lane.hpp"

/// The GPU ring as a library: messages go to a persistent kernel and results come back, with no CUDA call per message.
/// The work is your own functor; feedrate/kernel.hpp makes a Kernel from it.
///
///     const auto device = feedrate::open_device("auto");        // the GPU, or CPU threads if there is none
///     const auto work = make_work();                            // a KernelOf<YourFunctor>
///     feedrate::GpuRing ring(*device, *work, {.message_bytes = 256, .result_bytes = 256});
///     ring.start();
///     const auto id = ring.try_submit(bytes);                   // empty if the ring is full
///     const feedrate::RingAnswer answer = ring.wait(*id, std::chrono::seconds(1));
///
/// Errors: BadInput for an invalid request by the caller, Failure for an error of CUDA or memory; both are
/// std::runtime_error. If the functor rejects a message, only that message fails, and its RingAnswer gives the reason.
///
/// While a ring runs, its kernel occupies a part of the GPU and does not end. In this process, calls that wait for the
/// entire device then block forever: cudaFree, cudaFreeHost, cudaHostUnregister, cudaDeviceSynchronize, the first
/// launch of a kernel that is not loaded (open_device loads all kernels up front; CUDA_MODULE_LOADING=LAZY would undo
/// that), and any launch with CUDA_LAUNCH_BLOCKING=1. While they wait, the calls that free memory hold a lock, so
/// kernel launches and event records in other threads block as well. Allocations, copies, the legacy stream, graphs,
/// streams and events do not wait for the kernel (measured on an H200 with driver 580). Free memory after stop(), or
/// let the ring park (see RingIdle). Making a ring runs a short kernel and waits for it, so it blocks while other
/// kernels occupy all SMs. A debug build of the library throws if a Device allocates memory during that time.
namespace feedrate {

/// Where message slots live. `pinned`: in host memory; the GPU pulls messages over the bus. `vram`: copy engines move
/// batches to the GPU's memory and results back; use it for batches of 1 MiB or more.
enum class Slots { pinned, vram };
/// Behaviour of the grid while no messages arrive: it polls continuously, polls less and less often, or leaves the GPU
/// and is restarted for the next message (which then waits for a launch).
enum class RingIdle { spin, backoff, park };

struct RingConfig {
  std::size_t message_bytes = 64;  ///< maximum payload of a message
  std::size_t result_bytes = 64;   ///< maximum payload of a result
  unsigned lanes = 1;              ///< independent rings, one block of the grid each
  std::size_t capacity = 1024;     ///< messages per lane, including results not yet released; a power of two
  /// Maximum number of messages per reserve or poll. With flags, 1 gives lone messages the lowest latency.
  std::size_t batch = 64;
  unsigned block = 256;             ///< threads that serve a lane: a multiple of 32, at most 1024
  unsigned pollers = 1;             ///< number of teams that share these threads: 1 to 16, of full warps
  unsigned mirrors = 1;             ///< copies of flagged slots for different pollers, 1 to `pollers`
  Notify notify = Notify::counter;  ///< `flags`: slots with in-band ready flags, for lone messages
  /// `as_finished`: a result does not wait for the results of earlier messages in its lane.
  ResultOrder results = ResultOrder::in_order;
  Granularity granularity = Granularity::automatic;  ///< the group of threads that works on one message
  Slots slots = Slots::pinned;
  RingIdle idle = RingIdle::spin;
  std::chrono::microseconds park_after{10'000};  ///< idle time after which `park` leaves the GPU
};

/// Returns why a config is invalid; empty if it is valid. The second overload also checks whether all lanes can be
/// resident on the device at once.
FEEDRATE_EXPORT std::string why_unsupported(const RingConfig&);
FEEDRATE_EXPORT std::string why_unsupported(const RingConfig&, Device&, const Kernel& work);

enum class RingStop { drain, now };
enum class RingStatus { ok, failed, timeout, stopped };

struct RingAnswer {
  RingStatus status = RingStatus::timeout;
  Fault fault = Fault::none;       ///< the reason, if `failed`
  std::vector<std::byte> payload;  ///< payload of an `ok` result
};

struct RingStats {
  std::uint64_t published = 0;  ///< messages published
  std::uint64_t released = 0;   ///< results read and released
  unsigned parked_lanes = 0;    ///< lanes that are parked because no messages arrive
  std::uint64_t restarts = 0;   ///< restarts of parked lanes
};

/// The two ends of one lane. Each end may be used by one thread at a time; the two ends may use different threads.
class RingLane {
 public:
  virtual ~RingLane() = default;
  /// Returns up to `n` (at most `batch`) adjacent messages to be written in place: header (id of your choice, payload
  /// length, checksum 0) and payload. Empty if the lane is full. Never blocks. Repeated calls return the same messages
  /// until the next publish.
  virtual Messages reserve(std::size_t n) = 0;
  /// Sends the first `n` reserved messages.
  virtual void publish(std::size_t n) = 0;
  /// Returns results that have arrived, at most `n` and at most `batch`; possibly none. Never blocks. The results stay
  /// valid until released. A result has its message's id. If the message failed, the length is kFailed | Fault and
  /// there is no payload (payload_bytes).
  virtual ConstMessages poll(std::size_t n) = 0;
  virtual void release(std::size_t n) = 0;
};

class FEEDRATE_EXPORT GpuRing {
 public:
  /// Allocates everything. `device` and `work` must outlive the ring. Throws BadInput if the config is invalid, Failure
  /// if an allocation fails.
  GpuRing(Device& device, const Kernel& work, const RingConfig& config);
  /// Stops the ring immediately, if it still runs.
  ~GpuRing();
  GpuRing(const GpuRing&) = delete;
  GpuRing& operator=(const GpuRing&) = delete;

  /// Starts the grid. Throws BadInput if called twice, Failure if the launch fails.
  void start();
  /// The ends of a lane; do not combine them with try_submit on the same ring. Throws std::out_of_range if `index` is
  /// not below lanes().
  RingLane& lane(unsigned index);
  unsigned lanes() const;

  /// Submits a copy of a message and returns its id. Empty if all lanes are full; try again after a wait(). Any thread.
  /// Throws BadInput for more than message_bytes.
  std::optional<std::uint64_t> try_submit(std::span<const std::byte> payload);
  /// Returns the result of a submitted message, once. `timeout`: the result has not arrived yet but may still arrive.
  /// `stopped`: it will never arrive. Results that no thread waits for stay in memory. Any thread. Throws BadInput for
  /// an unknown id, Failure if the grid broke.
  RingAnswer wait(std::uint64_t id, std::chrono::nanoseconds timeout);

  /// Restarts the pollers of parked lanes that have waiting messages. poll() and wait() do this if they find no result;
  /// a producer may also call it. Any thread. Throws Failure if the grid broke.
  void wake();
  /// Throws Failure if the grid ended unexpectedly or broke. Any thread.
  void check();
  /// Returns the counters. They are exact if nothing is being sent. Any thread.
  RingStats stats() const;
  /// Stops the grid. `drain`: after all published messages are served, or when no message has been served for
  /// `patience`. `now`: at the next poll. Producers must have stopped. Results that have arrived can still be polled or
  /// waited for. Returns the ids of published messages that will have no result. Safe to call twice.
  std::vector<std::uint64_t> stop(RingStop how, std::chrono::nanoseconds patience = std::chrono::seconds(10));
  /// Number of host threads that the grid occupies: the serving threads on the CPU device, none on a GPU.
  unsigned host_threads() const;

 protected:
  /// For a benchmark harness whose kernels record when they work on messages (Kernel::KernelRecorder). All lanes share
  /// `recorder`.
  GpuRing(Device& device, const Kernel& work, const RingConfig& config, const RecorderState& recorder);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace feedrate
