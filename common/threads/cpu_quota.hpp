#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace feedrate {

/// The CPU time that control groups allow a process: cgroup v1 (cpu.cfs_quota_us) and v2 (cpu.max), for the process's
/// own group and all its ancestors that are visible in the container.
struct CpuQuota {
  std::optional<double> cores;                ///< CPU seconds per second, the minimum over all groups; none: no limit
  std::vector<std::filesystem::path> groups;  ///< folders of the groups with a limit
};
/// `process`: the process's folder in /proc. Files that cannot be read impose no limit.
CpuQuota read_cpu_quota(const std::filesystem::path& process = "/proc/self");

/// Number of scheduling periods (100 ms by default) in which the groups ran, and in which they were throttled until the
/// next period.
struct Throttling {
  std::uint64_t periods = 0, throttled = 0;
};
/// Totals over all groups since their creation; only the difference between two readings is meaningful.
Throttling read_throttling(const CpuQuota&);

}  // namespace feedrate
