#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "common/threads/cpu_quota.hpp"

namespace feedrate {

/// Counters of /proc/stat, in ticks since boot. Only differences are meaningful.
struct ProcStat {
  struct Core {
    std::uint64_t busy = 0, idle = 0, steal = 0;
  };
  std::map<unsigned, Core> cores;                 ///< keyed by number, without offline cores
  std::optional<std::uint64_t> context_switches;  ///< system-wide
};
/// Parses /proc/stat; skips malformed lines.
ProcStat parse_proc_stat(std::string_view text);

/// Counters of the host and of this process at one moment.
struct HostReading {
  std::uint64_t at_ns = 0;
  ProcStat system;  ///< empty if there is no /proc/stat
  double own_cpu_seconds = 0;
  double children_cpu_seconds = 0;  ///< of processes that this one started and their children; 0 if unknown
  std::uint64_t own_voluntary_switches = 0, own_involuntary_switches = 0;
  CpuQuota quota{};
  Throttling throttling{};
};
HostReading read_host(const std::filesystem::path& proc = "/proc");

/// Use of the host between two readings.
struct HostUse {
  struct Core {
    double busy = 0, steal = 0;  ///< shares of the time, 0 to 1
  };
  double seconds = 0;
  /// Cores present in both readings, by number. Empty if the system does not report them, or if the interval was too
  /// short for the tick resolution.
  std::vector<Core> cores;
  std::optional<std::size_t> allowed_cores;  ///< cores that this process may use
  double own_cores = 0;                      ///< CPU seconds per second of this process
  double children_cores = 0;                 ///< the same for processes that this one started: servers, helpers
  std::uint64_t own_voluntary_switches = 0, own_involuntary_switches = 0;
  std::optional<std::uint64_t> system_switches;
  std::optional<double> quota_cores;  ///< CPU seconds per second that control groups allow; none: no limit
  std::uint64_t periods = 0;          ///< number of quota periods
  std::uint64_t throttled = 0;        ///< periods in which threads had to wait for the next one

  double busy_cores() const;    ///< sum over `cores`
  double other_cores() const;   ///< busy with other processes, including private services
  double stolen_cores() const;  ///< given to other guests by the hypervisor while a thread here was runnable
};
HostUse host_use(const HostReading& begin, const HostReading& end);

}  // namespace feedrate
