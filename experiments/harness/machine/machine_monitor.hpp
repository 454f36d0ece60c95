#pragma once
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

#include "experiments/harness/machine/machine_state.hpp"

namespace feedrate {

/// Watches the machine from its construction until `stop()`. The host's counters are read at both ends, in the caller's
/// thread (some 0.1 ms). A thread of its own samples the GPU at the begin, every `period_seconds` and at the end,
/// asleep in between; without a GPU there is no such thread.
class MachineMonitor {
 public:
  /// `proc` stands in for /proc in tests.
  explicit MachineMonitor(GpuSource gpu = {}, double period_seconds = 1, std::filesystem::path proc = "/proc");
  /// Without `stop()`, what was seen is dropped.
  ~MachineMonitor() = default;
  MachineMonitor(const MachineMonitor&) = delete;
  MachineMonitor& operator=(const MachineMonitor&) = delete;

  /// Ends the watch when first called, from any thread, and gives the same again later. Takes as long as a sample of
  /// the GPU without PCIe, and up to 40 ms more where one is under way.
  MachineState stop();

 private:
  void watch(const std::stop_token&);
  void sample(const std::stop_token&);

  GpuSource gpu_;
  std::filesystem::path proc_;
  MachineState state_;  // the thread's until it has ended
  HostReading begin_;
  std::once_flag stopped_;
  std::jthread thread_;  // last: it uses the above
};

}  // namespace feedrate
