#include "experiments/storage/io_counters.hpp"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace feedrate::storage {

IoCounters IoCounters::now(const std::string& device) {
  IoCounters found;
  std::ifstream file("/proc/self/io");
  std::string name;
  for (std::uint64_t value = 0; file >> name >> value;) {
    if (name == "read_bytes:") found.read_bytes = value;
    if (name == "write_bytes:") found.written_bytes = value;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  found.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  // Documentation/block/stat.rst: requests, merges, sectors and ms of reading, then of writing.
  std::ifstream statistics("/sys/dev/block/" + device + "/stat");
  constexpr std::uint64_t kSector = 512;
  std::uint64_t counts[7] = {};
  for (std::uint64_t& count : counts) statistics >> count;
  if (statistics) {
    found.device_read_bytes = kSector * counts[2];
    found.device_written_bytes = kSector * counts[6];
  }
  return found;
}

IoCounters operator-(const IoCounters& after, const IoCounters& before) {
  const auto difference = [](const auto& a, const auto& b) { return a && b ? std::optional(*a - *b) : std::nullopt; };
  return {after.read_bytes - before.read_bytes, after.written_bytes - before.written_bytes,
          after.cpu_seconds - before.cpu_seconds, difference(after.device_read_bytes, before.device_read_bytes),
          difference(after.device_written_bytes, before.device_written_bytes)};
}

}  // namespace feedrate::storage
