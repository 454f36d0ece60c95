#include "experiments/harness/load/lag_account.hpp"

#include <chrono>
#include <thread>

namespace feedrate {

void wait_for_due(std::uint64_t gap_ns, Backoff& backoff) {
  constexpr std::uint64_t kLong = 1'000'000, kNear = 5'000;
  if (gap_ns > kLong) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  } else if (gap_ns > kNear) {
    backoff.wait();
  }
}

}  // namespace feedrate
