#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <feedrate/ring.hpp>

namespace feedrate::python {

class Mailbox;

/// Outcome of a single message.
enum class Ending : std::uint8_t { ok, failed, stopped, broken };

/// One message in flight, and later its result. Its index in the pool is the id of the message.
struct Ticket {
  std::atomic<bool> arrived{false};
  Ending ending = Ending::ok;
  Fault fault = Fault::none;
  std::vector<std::byte> payload;  // keeps its capacity for the next message
  std::uint32_t id = 0;
  unsigned lane = 0;
  enum class State : std::uint8_t {
    idle,
    waiting,
    delivering,
    arrived
  } state = State::idle;             // protected by the pool's mutex
  std::shared_ptr<Mailbox> mailbox;  // null if a caller waits for this ticket
  void* owner = nullptr;             // identifies the ticket to the mailbox's reader; null if the result is not wanted
};

/// Results for which no caller blocks: a list, and a file descriptor that is readable while the list may have entries.
/// One wake-up notifies an event loop of many results. A quiet mailbox has no descriptor; its reader polls with
/// Calls::collect().
class Mailbox {
 public:
  explicit Mailbox(bool quiet);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  int descriptor() const { return descriptor_; }  ///< -1 for a quiet mailbox
  bool quiet() const { return descriptor_ < 0; }
  /// Adds a ticket. Any thread may call it.
  void put(Ticket*);
  /// Removes and returns all tickets.
  std::vector<Ticket*> take();
  /// Waits until the mailbox may have tickets, at most for the given time. Any thread may call it.
  void wait(std::chrono::milliseconds) const;

 private:
  int descriptor_;
  std::mutex mutex_;
  std::vector<Ticket*> arrived_;
};

/// Sends single messages through a ring, from any thread. A caller that waits for its result also collects the results
/// of other callers. A separate thread collects for mailboxes while any of them expects a result.
class Calls {
 public:
  Calls(Device&, const Kernel&, const RingConfig&);
  ~Calls();

  /// Sends a copy of `payload`. Returns null if every lane is full. `mailbox` may be null; `owner` is then ignored.
  /// Throws Failure after stop().
  Ticket* try_submit(std::span<const std::byte> payload, const std::shared_ptr<Mailbox>& mailbox, void* owner);
  /// Waits for the result. Returns false after `slice`; the result may still arrive.
  bool wait(const Ticket&, std::chrono::nanoseconds slice);
  /// Collects the results that have arrived, for all callers and mailboxes.
  void collect();
  /// Returns a ticket to the pool. Call it once per ticket: after its result was read, or earlier if the result is no
  /// longer wanted.
  void give_back(Ticket*);
  /// Stops the ring. Tickets without a result end as `stopped`.
  void stop(RingStop how, std::chrono::nanoseconds patience);
  /// Pauses (true) or resumes (false) sending. Pauses nest; during a pause try_submit() finds no room. When the call
  /// returns, no thread is in the middle of sending.
  void pause(bool on);
  /// Whether no kernel of this ring is on the GPU.
  bool resting() const;
  /// Whether all messages sent have been answered and no kernel of this ring is on the GPU.
  bool parked();
  std::uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  RingStats stats() const { return ring_.stats(); }
  const std::string& broken() const { return broken_; }

 private:
  struct Lane {
    std::mutex in, out;  // protect the sending and the receiving end
  };
  Ticket* take_ticket(const std::shared_ptr<Mailbox>&, void* owner);
  std::size_t collect(unsigned lane);
  std::size_t collect_held(unsigned lane);  ///< requires the lane's `out` mutex
  bool claim(Ticket&);
  void deliver(Ticket&, Ending);
  void collect_for_mailboxes(const std::stop_token&);
  void end_all(Ending);
  void check();
  void fail(const std::string& what);

  RingConfig config_;
  GpuRing ring_;
  std::vector<Lane> lanes_;
  std::atomic<unsigned> next_lane_{0};
  std::atomic<std::uint64_t> in_flight_{0};

  std::mutex pool_mutex_;
  std::deque<Ticket> pool_;
  std::vector<Ticket*> free_;

  std::mutex start_mutex_;
  std::atomic<bool> started_{false}, stopped_{false};
  std::atomic<int> paused_{0};
  bool shut_ = false;   // stop() was called
  std::string broken_;  // written before stopped_

  std::mutex expected_mutex_;
  std::condition_variable_any expects_;
  std::atomic<std::uint64_t> expected_{0};  // number of results that mailboxes expect
  std::jthread collector_;                  // last member, because the thread uses all of the above
};

}  // namespace feedrate::python
