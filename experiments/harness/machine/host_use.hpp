#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "common/threads/cpu_quota.hpp"

namespace feedrate {

/// What /proc/stat counts, in ticks since boot: only differences mean something.
struct ProcStat {
  struct Core {
    std::uint64_t busy = 0, idle = 0, steal = 0;
  };
  std::map<unsigned, Core> cores;                 ///< by number; cores that are offline are missing
  std::optional<std::uint64_t> context_switches;  ///< of the whole system
};
/// Lines that make no sense are left out.
ProcStat parse_proc_stat(std::string_view text);

/// Counters of the host and of this process at one moment.
struct HostReading {
  std::uint64_t at_ns = 0;
  ProcStat system;  ///< empty where there is no /proc/stat
  double own_cpu_seconds = 0;
  std::uint64_t own_voluntary_switches = 0, own_involuntary_switches = 0;
  CpuQuota quota{};
  Throttling throttling{};
};
HostReading read_host(const std::filesystem::path& proc = "/proc");

/// How the host was used between two readings.
struct HostUse {
  struct Core {
    double busy = 0, steal = 0;  ///< shares of the time, 0 to 1
  };
  double seconds = 0;
  /// The cores that were there at both readings, by number. Empty where the system doesn't say, or where the time
  /// between was too short for its ticks.
  std::vector<Core> cores;
  std::optional<std::size_t> allowed_cores;  ///< that this process may use
  double own_cores = 0;                      ///< CPU seconds a second of this process
  std::uint64_t own_voluntary_switches = 0, own_involuntary_switches = 0;
  std::optional<std::uint64_t> system_switches;
  std::optional<double> quota_cores;         ///< CPU seconds a second that control groups allow; none: no limit
  std::uint64_t periods = 0, throttled = 0;  ///< of the quota; those in which threads had to wait for the next one

  double busy_cores() const;    ///< their sum
  double other_cores() const;   ///< busy with other processes, private services among them
  double stolen_cores() const;  ///< what the hypervisor gave to others while something here wanted to run
};
HostUse host_use(const HostReading& begin, const HostReading& end);

}  // namespace feedrate
