#include "experiments/harness/machine/host_use.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <numeric>
#include <sstream>

#include "common/clock.hpp"
#include "common/threads/threads.hpp"

namespace feedrate {
namespace {

// A tick is 10 ms on all common kernels. Shares computed from fewer ticks would be off by tens of percent.
constexpr double kLeastTicks = 5;

/// Removes a number from the front of `line`; returns nothing if there is none or if it is out of range.
std::optional<std::uint64_t> take_number(std::string_view& line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return value;
}

/// "3 <user> <nice> <system> <idle> <iowait> <irq> <softirq> <steal> <guest> <guest_nice>". Old kernels
/// omit the last fields. Guest time is part of user time.
void take_core(std::string_view line, std::map<unsigned, ProcStat::Core>& cores) {
  const auto index = take_number(line);
  std::array<std::uint64_t, 8> ticks{};
  std::size_t fields = 0;
  for (; fields < ticks.size(); ++fields) {
    const auto value = take_number(line);
    if (!value) break;
    ticks.at(fields) = *value;
  }
  const bool whole = fields == ticks.size() || line.find_first_not_of(' ') == line.npos;
  if (!index || fields < 4 || !whole) return;
  const auto& [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
  cores[static_cast<unsigned>(*index)] = {user + nice + system + irq + softirq, idle + iowait, steal};
}

/// Difference of two counters. Counters may wrap, and counters of idle time may decrease slightly.
std::uint64_t difference(std::uint64_t begin, std::uint64_t end) {
  const auto difference = static_cast<std::int64_t>(end - begin);
  return difference < 0 ? 0 : static_cast<std::uint64_t>(difference);
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  if (std::ifstream file(path); file) text << file.rdbuf();
  return text.str();
}

/// Adds the CPU time of the processes that `process` (a folder in /proc) started, and of theirs.
void add_children(const std::filesystem::path& proc, const std::filesystem::path& process, double& ticks) {
  std::error_code ended;
  for (const auto& thread : std::filesystem::directory_iterator(process / "task", ended)) {
    std::istringstream children(text_of(thread.path() / "children"));
    for (std::string pid; children >> pid;) {
      const std::string stat = text_of(proc / pid / "stat");
      std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));  // after the command's name
      std::string skipped;
      for (int i = 0; i < 11; ++i) fields >> skipped;  // state to cmajflt
      double user = 0, system = 0;
      if (fields >> user >> system) ticks += user + system;
      add_children(proc, proc / pid, ticks);
    }
  }
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

template <class Value>
double sum(const std::vector<HostUse::Core>& cores, Value value) {
  return std::transform_reduce(cores.begin(), cores.end(), 0.0, std::plus<>(), value);
}

}  // namespace

ProcStat parse_proc_stat(std::string_view text) {
  ProcStat stat;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with("cpu") && !line.starts_with("cpu ")) {  // "cpu " is the sum of all cores
      take_core(line.substr(3), stat.cores);
    } else if (line.starts_with("ctxt ")) {
      line.remove_prefix(5);
      stat.context_switches = take_number(line);
    }
  }
  return stat;
}

HostReading read_host(const std::filesystem::path& proc) {
  std::ostringstream text;
  if (std::ifstream file(proc / "stat"); file) text << file.rdbuf();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);  // all threads, including those that have ended
  const CpuQuota quota = read_cpu_quota(proc / "self");
  double children_ticks = 0;
  add_children(proc, proc / "self", children_ticks);
  return {.at_ns = now_ns(),
          .system = parse_proc_stat(text.str()),
          .own_cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime),
          .children_cpu_seconds = children_ticks / static_cast<double>(sysconf(_SC_CLK_TCK)),
          .own_voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw),
          .own_involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw),
          .quota = quota,
          .throttling = read_throttling(quota)};
}

HostUse host_use(const HostReading& begin, const HostReading& end) {
  HostUse use;
  use.allowed_cores = available_cores();
  use.seconds = 1e-9 * static_cast<double>(difference(begin.at_ns, end.at_ns));
  use.own_voluntary_switches = difference(begin.own_voluntary_switches, end.own_voluntary_switches);
  use.own_involuntary_switches = difference(begin.own_involuntary_switches, end.own_involuntary_switches);
  use.quota_cores = end.quota.cores;
  use.periods = difference(begin.throttling.periods, end.throttling.periods);
  use.throttled = difference(begin.throttling.throttled, end.throttling.throttled);
  if (use.seconds > 0) {
    use.own_cores = std::max(0.0, end.own_cpu_seconds - begin.own_cpu_seconds) / use.seconds;
    use.children_cores = std::max(0.0, end.children_cpu_seconds - begin.children_cpu_seconds) / use.seconds;
  }
  if (begin.system.context_switches && end.system.context_switches) {
    use.system_switches = difference(*begin.system.context_switches, *end.system.context_switches);
  }
  if (use.seconds * static_cast<double>(sysconf(_SC_CLK_TCK)) < kLeastTicks) return use;
  for (const auto& [index, after] : end.system.cores) {
    const auto before = begin.system.cores.find(index);
    if (before == begin.system.cores.end()) continue;
    const auto busy = static_cast<double>(difference(before->second.busy, after.busy));
    const auto idle = static_cast<double>(difference(before->second.idle, after.idle));
    const auto steal = static_cast<double>(difference(before->second.steal, after.steal));
    const double total = busy + idle + steal;
    if (total > 0) use.cores.push_back({busy / total, steal / total});  // in some sandboxes all counters are 0
  }
  return use;
}

double HostUse::busy_cores() const {
  return sum(cores, [](const Core& core) { return core.busy; });
}

double HostUse::other_cores() const { return std::max(0.0, busy_cores() - own_cores); }

double HostUse::stolen_cores() const {
  return sum(cores, [](const Core& core) { return core.steal; });
}

}  // namespace feedrate
