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

/// The GPU ring as a library: messages go to a kernel that never ends and results come back, without a CUDA call for a
/// message. The work is a functor of yours; feedrate/kernel.hpp makes a Kernel from it.
///
///     const auto device = feedrate::open_device("auto");        // the GPU, or threads where there is none
///     const auto work = make_work();                            // a KernelOf<YourFunctor>
///     feedrate::GpuRing ring(*device, *work, {.message_bytes = 256, .result_bytes = 256});
///     ring.start();
///     const auto id = ring.try_submit(bytes);                   // nothing when the ring is full
///     const feedrate::RingAnswer answer = ring.wait(*id, std::chrono::seconds(1));
///
/// Errors: BadInput for what the caller asked and cannot be, Failure for what broke (CUDA, memory); both are
/// std::runtime_error. A message that the functor does not take fails alone, and its RingAnswer says why.
///
/// While a ring runs, its kernel holds a part of the GPU and does not end. Calls that wait for the whole device then
/// wait for ever, in this process: cudaFree, cudaFreeHost, cudaHostUnregister, cudaDeviceSynchronize, the first launch
/// of a kernel that is not loaded (open_device has all of them loaded at once; CUDA_MODULE_LOADING=LAZY would undo
/// that), and any launch with CUDA_LAUNCH_BLOCKING=1. Those that free hold a lock meanwhile, so launches and records of
/// other threads wait, too. Allocations, copies, the legacy stream, graphs, streams and events do not wait for it
/// (tests/trials/beside_resident.cu, on an H200 with driver 580). Free after stop(), or let the ring park: RingIdle. A
/// library built for debugging throws where a Device is asked for memory in that time.
namespace feedrate {

/// Where messages lie. `pinned`: in host memory, the GPU pulls them over the bus. `vram`: copy engines bring batches to
/// the GPU's memory, and results back: for batches of a MiB and more.
enum class Slots { pinned, vram };
/// What the grid does while nothing comes: looks on at once, looks less and less often, or leaves the GPU and is
/// started again for the next message (which then waits for a launch).
enum class RingIdle { spin, backoff, park };

struct RingConfig {
  std::size_t message_bytes = 64;  ///< most payload of a message
  std::size_t result_bytes = 64;   ///< most payload of a result
  unsigned lanes = 1;              ///< independent rings, a block of the grid each
  std::size_t capacity = 1024;     ///< messages a lane holds, results not yet released included; a power of two
  /// Most messages that one reserve or poll hands out. By flags 1 is the shortest way for messages that come alone.
  std::size_t batch = 64;
  unsigned block = 256;             ///< threads that serve a lane: whole warps, at most 1024
  unsigned pollers = 1;             ///< teams that these are split into: 1 to 16, whole warps each
  unsigned mirrors = 1;             ///< copies of flagged slots for different pollers, 1 to `pollers`
  Notify notify = Notify::counter;  ///< `flags`: slots say themselves that they are full, for messages that come alone
  /// `as_finished`: a result does not wait for those of earlier messages of its lane.
  ResultOrder results = ResultOrder::in_order;
  Granularity granularity = Granularity::automatic;  ///< who works on one message
  Slots slots = Slots::pinned;
  RingIdle idle = RingIdle::spin;
  std::chrono::microseconds park_after{10'000};  ///< idle time after which `park` leaves
};

/// Why a config can't be; empty when it can. The second also asks whether the device holds all lanes at once.
FEEDRATE_EXPORT std::string refuse(const RingConfig&);
FEEDRATE_EXPORT std::string refuse(const RingConfig&, Device&, const Kernel& work);

enum class RingStop { drain, now };
enum class RingStatus { ok, failed, timeout, stopped };

struct RingAnswer {
  RingStatus status = RingStatus::timeout;
  Fault fault = Fault::none;       ///< why, when `failed`
  std::vector<std::byte> payload;  ///< of an `ok` result
};

struct RingStats {
  std::uint64_t published = 0;  ///< messages
  std::uint64_t released = 0;   ///< results taken and given back
  unsigned parked_lanes = 0;    ///< not served at the moment, for want of messages
  std::uint64_t restarts = 0;   ///< of parked lanes
};

/// One lane's two ends. Each end is for one thread at a time; the two ends may be different threads.
class RingLane {
 public:
  virtual ~RingLane() = default;
  /// Up to `n` (at most `batch`) messages to write in place, side by side: header (id of your choice, payload length,
  /// checksum 0) and payload. Empty when the lane is full. Never blocks. Until the next publish, they lie in the same
  /// place.
  virtual Messages reserve(std::size_t n) = 0;
  /// Sends the first `n` of those reserved.
  virtual void publish(std::size_t n) = 0;
  /// Results that have arrived, at most `n` and `batch`; may be empty, never blocks. They stay until released. A result
  /// has its message's id; when the message failed, its length is kFailed | Fault, and there
  /// is no payload (payload_bytes).
  virtual ConstMessages poll(std::size_t n) = 0;
  virtual void release(std::size_t n) = 0;
};

class FEEDRATE_EXPORT GpuRing {
 public:
  /// Allocates everything. `device` and `work` must outlive it. Throws BadInput when the config can't be, Failure when
  /// memory can't be had.
  GpuRing(Device& device, const Kernel& work, const RingConfig& config);
  /// Stops at once, if that was not done.
  ~GpuRing();
  GpuRing(const GpuRing&) = delete;
  GpuRing& operator=(const GpuRing&) = delete;

  /// Starts the grid. Once: throws BadInput when called twice, Failure when the device refuses.
  void start();
  /// The ends of a lane; don't mix with try_submit on the same ring. Throws std::out_of_range from lanes() on.
  RingLane& lane(unsigned index);
  unsigned lanes() const;

  /// Copies a message in and gives it an id; nothing when all lanes are full: try again after a wait(). Any thread.
  /// Throws BadInput for more than message_bytes.
  std::optional<std::uint64_t> try_submit(std::span<const std::byte> payload);
  /// The result of a submitted message, once; `timeout` when it has not come by then, and may still. `stopped`: it will
  /// never come. Results that nobody waits for stay in memory. Any thread. Throws BadInput for an id that no message
  /// has, Failure when the grid broke.
  RingAnswer wait(std::uint64_t id, std::chrono::nanoseconds timeout);

  /// Calls back the pollers of lanes that left while messages wait there. poll() and wait() do this when they find
  /// nothing; a producer of its own may, too. Any thread. Throws Failure when the grid broke.
  void wake();
  /// Throws Failure when the grid ended by itself or broke. Any thread.
  void check();
  /// Any thread; exact when nothing is being sent.
  RingStats stats() const;
  /// Ends the grid: `drain` after all that is published is served, but gives up when nothing is served for
  /// `patience`; `now` at the next look. Producers must have stopped. Results that came can still be polled or waited
  /// for. Returns the ids of messages that were published and will have no result. Twice is harmless.
  std::vector<std::uint64_t> stop(RingStop how, std::chrono::nanoseconds patience = std::chrono::seconds(10));
  /// Host threads that the grid holds: on the CPU device those that serve, on a GPU none.
  unsigned host_threads() const;

 protected:
  /// For a harness whose kernels note when they work on messages (Kernel::KernelMarks): every lane carries `marks`.
  GpuRing(Device& device, const Kernel& work, const RingConfig& config, const Marks& marks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace feedrate
