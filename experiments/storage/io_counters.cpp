#include "experiments/storage/io_counters.hpp"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace feedrate::storage {

IoCounters IoCounters::now() {
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
  return found;
}

IoCounters operator-(const IoCounters& after, const IoCounters& before) {
  return {after.read_bytes - before.read_bytes, after.written_bytes - before.written_bytes,
          after.cpu_seconds - before.cpu_seconds};
}

}  // namespace feedrate::storage
