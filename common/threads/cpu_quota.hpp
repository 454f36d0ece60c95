#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace feedrate {

/// The CPU time that control groups allow to a process: cgroup v1 (cpu.cfs_quota_us) and v2 (cpu.max), its own group
/// and those above it, as far as a container shows them.
struct CpuQuota {
  std::optional<double> cores;                ///< CPU seconds per second, the least of all groups; none: no limit
  std::vector<std::filesystem::path> groups;  ///< folders of the groups that have a limit
};
/// `process`: its folder in /proc. What can't be read limits nothing.
CpuQuota read_cpu_quota(const std::filesystem::path& process = "/proc/self");

/// Periods (100 ms by default) in which the groups had work, and in which they had to wait for the next one.
struct Throttling {
  std::uint64_t periods = 0, throttled = 0;
};
/// Totals over all groups since they were made; only the difference of two readings has a meaning.
Throttling read_throttling(const CpuQuota&);

}  // namespace feedrate
