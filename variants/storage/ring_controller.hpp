#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "kernels/storage/rings.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/uring.hpp"

namespace feedrate::storage {

/// A fault that a controller injects into every 64th command, for tests of those who wait for it.
enum class RingFault {
  none,
  delayed,    ///< completes 20 ms later
  reordered,  ///< completes after eight later commands
  lost,       ///< never completes
  failing,    ///< completes with EIO
  early       ///< completes before its data has arrived
};

/// An NVMe controller in software: one thread takes the commands of all queues, reads and writes files with io_uring,
/// and posts completions. Namespace n is file n - 1, with logical blocks of one byte.
class RingController {
 public:
  struct Config {
    const OpenFiles& files;
    std::span<const rings::Queue> queues;  ///< `submissions`, `completions` and the doorbells are used
    std::span<std::byte> staging;          ///< memory that commands may name
    std::size_t depth = 1;                 ///< maximum number of commands under way
    bool punts = false;                    ///< the kernel's workers run each request (IOSQE_ASYNC)
    RingFault fault = RingFault::none;
    std::size_t largest_buffer = std::size_t{1} << 30;  ///< most bytes that io_uring registers as one buffer
  };
  /// Throws Failure if io_uring cannot be set up.
  explicit RingController(const Config&);
  /// Cancels the commands under way and waits until they have ended.
  ~RingController();
  RingController(const RingController&) = delete;
  RingController& operator=(const RingController&) = delete;

  /// Throws the Failure that ended the controller, if one did.
  void check();
  std::uint64_t injected() const { return injected_.load(); }  ///< number of faults so far

 private:
  /// A queue as the controller sees it.
  struct Lane {
    rings::Queue queue;
    std::uint32_t head = 0;       ///< index of the next command
    std::uint32_t tail = 0;       ///< the doorbell's value when it was last read
    std::uint64_t completed = 0;  ///< number of completions
  };
  struct Active {
    std::size_t lane = 0;
    nvme::Command command;
    std::uint32_t done = 0;  ///< bytes moved so far
    bool faulty = false;
  };
  struct Held {
    Active active;
    nvme::Status status;
    std::uint64_t due_ns, after;  ///< time, and number of completions, after which it is posted
  };
  void open(std::optional<Uring>&) const;
  std::size_t buffer_step() const;  ///< bytes from one registered buffer to the next
  void serve(Uring&, const std::stop_token&);
  bool take(Uring&);
  void begin(Uring&, std::size_t lane, const nvme::Command&);
  void queue(Uring&, std::size_t slot);
  bool collect(Uring&);
  void send(Uring&);
  bool release_held();
  void end(std::size_t slot, nvme::Status);
  void post(const Active&, nvme::Status);
  /// The name of the first invalid field; null if there is none.
  const char* why_invalid(const nvme::Command&) const;

  Config config_;
  std::vector<Lane> lanes_;
  std::vector<Active> active_;     // indexed by slot
  std::vector<std::size_t> free_;  // slots
  std::deque<Held> held_;
  std::size_t next_ = 0;  // the queue whose turn it is
  std::uint64_t commands_ = 0, posted_ = 0;
  unsigned unsent_ = 0, queued_ = 0;
  std::atomic<std::uint64_t> injected_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::jthread thread_;  // destroyed first
};

}  // namespace feedrate::storage
