#include "common/threads/cpu_quota.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace feedrate {
namespace {

namespace fs = std::filesystem;

bool has_word(const std::string& list, const std::string& word) {
  std::istringstream words(list);
  for (std::string one; std::getline(words, one, ',');) {
    if (one == word) return true;
  }
  return false;
}

/// A control-group hierarchy that may limit CPU time, as seen by a process.
struct Hierarchy {
  bool v2 = false;
  fs::path mount, root;  ///< the mount point, and the group that is mounted there
};

/// Format of the lines of mountinfo: id parent device root mount options tag… - type source file-system-options.
std::vector<Hierarchy> hierarchies(const fs::path& mountinfo) {
  std::vector<Hierarchy> found;
  std::ifstream file(mountinfo);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, mount, word, type, source, options;
    words >> id >> parent >> device >> root >> mount;
    while (words >> word && word != "-") continue;
    words >> type >> source >> options;
    const bool v2 = type == "cgroup2";
    if (v2 || (type == "cgroup" && has_word(options, "cpu"))) found.push_back({v2, mount, root});
  }
  return found;
}

/// Returns the process's group in the hierarchy. Format of the lines: number:controllers:path; v2 has no controllers.
std::optional<fs::path> group_in(const Hierarchy& hierarchy, const fs::path& cgroup) {
  std::ifstream file(cgroup);
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (hierarchy.v2 ? controllers.empty() : has_word(controllers, "cpu")) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<double> limit_of(const fs::path& group, bool v2) {
  double quota = 0, period = 0;
  if (v2) {
    std::ifstream(group / "cpu.max") >> quota >> period;  // "max" leaves quota at 0
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

CpuQuota read_cpu_quota(const fs::path& process) {
  CpuQuota found;
  for (const Hierarchy& hierarchy : hierarchies(process / "mountinfo")) {
    const auto group = group_in(hierarchy, process / "cgroup");
    if (!group) continue;
    // A container may see the same path as its host, or only a mount of its own group.
    fs::path below = group->lexically_relative(hierarchy.root);
    if (below.empty() || *below.begin() == "..") below = ".";
    for (;; below = below.parent_path()) {
      const fs::path folder = below.empty() || below == "." ? hierarchy.mount : hierarchy.mount / below;
      if (const auto limit = limit_of(folder, hierarchy.v2)) {
        found.cores = std::min(*limit, found.cores.value_or(*limit));
        found.groups.push_back(folder);
      }
      if (folder == hierarchy.mount) break;
    }
  }
  return found;
}

Throttling read_throttling(const CpuQuota& quota) {
  Throttling sum;
  for (const fs::path& group : quota.groups) {
    std::ifstream file(group / "cpu.stat");
    std::string name;
    for (std::uint64_t count = 0; file >> name >> count;) {
      if (name == "nr_periods") sum.periods += count;
      if (name == "nr_throttled") sum.throttled += count;
    }
  }
  return sum;
}

}  // namespace feedrate
