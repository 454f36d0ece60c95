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

inline std::atomic<unsigned> forks{0};  // of this process, seen from the child

/// Takes a ring that never rests off the GPU every `longest_stay`, for a moment, so that whoever waits for the whole
/// device gets a turn. Nothing tells that somebody waits: cudaDeviceSynchronize and the first launch of a kernel hold
/// no lock that another call would meet (tests/trials/beside_resident.cu).
class Watchdog {
 public:
  Watchdog(Calls& calls, Views& views, std::chrono::nanoseconds longest_stay)
      : calls_(calls),
        views_(views),
        longest_stay_(longest_stay),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  /// A ring that can't rest now, because a block of messages is sent meanwhile, is let go on.
  static constexpr std::chrono::milliseconds kPatience{250};
  static constexpr std::chrono::milliseconds kTurn{2};  // for who waited to see that the GPU is free

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
  std::jthread thread_;  // last: it uses all of the above
};

/// What a ring consists of. Blocks of messages and calls under way keep it.
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
    // The threads, and what the driver knows, stayed in the parent.
    static_cast<void>(watchdog.release());
    static_cast<void>(order.release());
    static_cast<void>(calls.release());
    static_cast<void>(views.release());
    static_cast<void>(kernel.release());
    static_cast<void>(device.release());
  }
};

}  // namespace feedrate::python
