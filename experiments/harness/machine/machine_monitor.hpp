#pragma once
#include <filesystem>
#include <mutex>
#include <stop_token>
#include <thread>

#include "experiments/harness/machine/machine_state.hpp"

namespace feedrate {

/// Monitors the machine from construction until `stop()`. The host's counters are read at both ends, in the caller's
/// thread (about 0.1 ms). A dedicated thread samples the GPU at the start, every `period_seconds` and at the end, and
/// sleeps in between. Without a GPU there is no such thread.
class MachineMonitor {
 public:
  /// `proc` replaces /proc in tests.
  explicit MachineMonitor(GpuSource gpu = {}, double period_seconds = 1, std::filesystem::path proc = "/proc");
  /// Discards the samples if `stop()` was not called.
  ~MachineMonitor() = default;
  MachineMonitor(const MachineMonitor&) = delete;
  MachineMonitor& operator=(const MachineMonitor&) = delete;

  /// Ends monitoring on the first call, from any thread; later calls return the same state. Takes as long as a GPU
  /// sample without PCIe, and up to 40 ms more if a sample is in progress.
  MachineState stop();

 private:
  void watch(const std::stop_token&);
  void sample(const std::stop_token&);

  GpuSource gpu_;
  std::filesystem::path proc_;
  MachineState state_;  // owned by the thread until it has ended
  HostReading begin_;
  std::once_flag stopped_;
  std::jthread thread_;  // last member, because it uses the others
};

}  // namespace feedrate
