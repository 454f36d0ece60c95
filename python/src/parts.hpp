#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "calls.hpp"
#include "views.hpp"
#include "work.hpp"

namespace feedrate::python {

inline std::atomic<unsigned> forks{0};  // number of forks that led to this process

/// Takes a busy ring off the GPU briefly every `longest_stay`, so that calls that wait for the entire device can
/// return. The ring cannot detect such calls: cudaDeviceSynchronize and the first launch of a kernel hold no lock that
/// another call would block on.
class Watchdog {
 public:
  Watchdog(Calls& calls, Views& views, std::chrono::nanoseconds longest_stay)
      : calls_(calls),
        views_(views),
        longest_stay_(longest_stay),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  /// Time to wait for the ring to leave the GPU. A ring that cannot leave, because a block of messages is being sent,
  /// continues.
  static constexpr std::chrono::milliseconds kPatience{250};
  static constexpr std::chrono::milliseconds kTurn{2};  // time for waiting calls to see that the GPU is free

  bool resting() const { return calls_.resting() && views_.resting(); }
  bool sleep(const std::stop_token& stop, std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    return !over_.wait_for(lock, stop, time, [&stop] { return stop.stop_requested(); });
  }
  void run(const std::stop_token& stop) {
    while (sleep(stop, longest_stay_)) {
      if (resting()) continue;
      calls_.pause(true);
      views_.pause(true);
      const auto until = std::chrono::steady_clock::now() + kPatience;
      while (!resting() && std::chrono::steady_clock::now() < until && sleep(stop, std::chrono::microseconds(500))) {
      }
      if (resting()) sleep(stop, kTurn);
      calls_.pause(false);
      views_.pause(false);
    }
  }

  Calls& calls_;
  Views& views_;
  std::chrono::nanoseconds longest_stay_;
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread thread_;  // last member, because the thread uses all of the above
};

/// The parts of a ring. Open blocks of messages and calls in progress keep them alive.
struct Parts {
  std::unique_ptr<Device> device;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Calls> calls;
  std::unique_ptr<Views> views;
  std::unique_ptr<Order> order;
  std::unique_ptr<Watchdog> watchdog;
  unsigned made_after = forks.load();

  bool of_this_process() const { return made_after == forks.load(); }
  ~Parts() {
    if (of_this_process()) return;
    // After a fork, the threads and the driver's state exist only in the parent process.
    static_cast<void>(watchdog.release());
    static_cast<void>(order.release());
    static_cast<void>(calls.release());
    static_cast<void>(views.release());
    static_cast<void>(kernel.release());
    static_cast<void>(device.release());
  }
};

}  // namespace feedrate::python
