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

/// How a single message ended.
enum class Ending : std::uint8_t { ok, failed, stopped, broken };

/// One message on its way, and later its result. Its place in the pool is the message's id.
struct Ticket {
  std::atomic<bool> arrived{false};
  Ending ending = Ending::ok;
  Fault fault = Fault::none;
  std::vector<std::byte> payload;  // keeps its room for the next message
  std::uint32_t id = 0;
  unsigned lane = 0;
  enum class State : std::uint8_t { idle, waiting, delivering, arrived } state = State::idle;  // under the pool's mutex
  std::shared_ptr<Mailbox> mailbox;  // none: somebody waits for this very ticket
  void* owner = nullptr;             // what the mailbox's reader knows it by; null: nobody wants the result any more
};

/// Results that nobody waits for in a call: a list, and a file descriptor that can be read while it may hold some. So
/// an event loop learns of many results by one wake-up. A quiet one has no descriptor: its reader looks by itself, with
/// Calls::collect().
class Mailbox {
 public:
  explicit Mailbox(bool quiet);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  int descriptor() const { return descriptor_; }  ///< -1 of a quiet one
  bool quiet() const { return descriptor_ < 0; }
  /// Any thread.
  void put(Ticket*);
  /// All that lies here.
  std::vector<Ticket*> take();
  /// Until something may lie here, at most so long. Any thread.
  void wait(std::chrono::milliseconds) const;

 private:
  int descriptor_;
  std::mutex mutex_;
  std::vector<Ticket*> arrived_;
};

/// Single messages through a ring, from any thread. A caller waits for its own result and collects those of others on
/// the way; a thread collects for mailboxes, as long as one of them expects a result.
class Calls {
 public:
  Calls(Device&, const Kernel&, const RingConfig&);
  ~Calls();

  /// Null when every lane is full. `payload` is copied. `mailbox` may be null; then `owner` is of no matter. Throws
  /// Failure after stop().
  Ticket* try_submit(std::span<const std::byte> payload, const std::shared_ptr<Mailbox>& mailbox, void* owner);
  /// False after `slice`, when the result may come later.
  bool wait(const Ticket&, std::chrono::nanoseconds slice);
  /// Takes in what has come, for whomever.
  void collect();
  /// To be called once for each ticket, after its result was read; or before it came, when nobody wants it any more.
  void give_back(Ticket*);
  /// Ends the ring. Tickets without a result are `stopped`.
  void stop(RingStop how, std::chrono::nanoseconds patience);
  /// Until as many calls with false as with true, try_submit() finds no room. When this returns, no message is about to
  /// be sent.
  void pause(bool on);
  /// Nothing holds the GPU.
  bool resting() const;
  /// All that was sent has come back, and nothing holds the GPU.
  bool parked();
  std::uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  RingStats stats() const { return ring_.stats(); }
  const std::string& broken() const { return broken_; }

 private:
  struct Lane {
    std::mutex in, out;  // of its two ends
  };
  Ticket* take_ticket(const std::shared_ptr<Mailbox>&, void* owner);
  std::size_t collect(unsigned lane);
  std::size_t collect_held(unsigned lane);  ///< by whoever has the lane's `out`
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
  std::atomic<std::uint64_t> expected_{0};  // results for mailboxes
  std::jthread collector_;                  // last: it uses all of the above
};

}  // namespace feedrate::python
