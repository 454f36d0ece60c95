#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "common/threads/threads.hpp"
#include "experiments/harness/limits/device_limits.hpp"
#include "tests/support/cells.hpp"

namespace feedrate::test {
namespace {

/// Keeps all cores busy with eight threads per core.
class Crowd {
 public:
  Crowd() {
    for (unsigned t = 0; t < 8 * available_cores(); ++t) {
      threads_.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

constexpr double kTurnNs = 500'000;  // threads that share a core run in turns of milliseconds

// Threads wait longer on a host whose cores are busy, and the reading must show this.
TEST(HostPause, PauseReflectsTheCurrentLoadOfTheHost) {
  double quiet = host_pause_p99_ns(), crowded = 0;
  for (int i = 0; i < 4; ++i) quiet = std::min(quiet, host_pause_p99_ns());
  {
    const Crowd crowd;
    for (int i = 0; i < 4; ++i) crowded = std::max(crowded, host_pause_p99_ns());
  }
  EXPECT_GT(quiet, 0);
  EXPECT_GT(crowded, kTurnNs);
  EXPECT_GT(crowded, 2 * quiet);
}

TEST(HostPause, PauseIsReadBeforeAndAfterEachCell) {
  Session session("feeding", "cpu", 0, {}, "test", brief(100));
  Point open;
  open.queue = "host_polled", open.arrivals = "poisson", open.rate = 1000;
  const Json quiet = run_cell(session, open)["details"]["host_pause_p99_ns"];
  EXPECT_GT(quiet["before"], 0);
  EXPECT_GT(quiet["after"], 0);
  const Crowd crowd;
  const Json crowded = run_cell(session, open, 1)["details"]["host_pause_p99_ns"];
  EXPECT_GT(std::max(crowded["before"].get<double>(), crowded["after"].get<double>()), kTurnNs);
}

}  // namespace
}  // namespace feedrate::test
