#include "experiments/harness/machine/environment.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "common/threads/threads.hpp"
#include "experiments/harness/machine/gpu_sample.hpp"
#include "revision.hpp"

namespace feedrate {
namespace {

std::string os_name() {
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (line.starts_with("PRETTY_NAME=\"")) return line.substr(13, line.size() - 14);
  }
  return "Linux";
}

}  // namespace

std::string version_text() {
  const std::string cuda = FEEDRATE_CUDA_COMPILER;
  return fmt::format("feedrate {} (revision {}, {} {}, CUDA {})", FEEDRATE_VERSION, FEEDRATE_REVISION,
                     FEEDRATE_COMPILER, FEEDRATE_BUILD_TYPE, cuda.empty() ? "none" : cuda);
}

Json environment_of(const Device& device, const std::string& command) {
  utsname kernel{};
  uname(&kernel);
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  Json environment{{"host", kernel.nodename},
                   {"os", fmt::format("{}, {} {}", os_name(), kernel.sysname, kernel.release)},
                   {"cpu", cpu_model()},
                   {"cores", available_cores()},
                   {"memory_bytes", pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))},
                   {"gpu", nullptr},
                   {"version", FEEDRATE_VERSION},
                   {"revision", FEEDRATE_REVISION},
                   {"compiler", FEEDRATE_COMPILER},
                   {"build_type", FEEDRATE_BUILD_TYPE},
                   {"command", command}};
  if (device.kind() == "cuda") {
    const DeviceInfo info = device.info();
    environment["gpu"] = info.name;
    environment["gpu_index"] = info.index;
    environment["gpu_sms"] = info.processors;
    environment["gpu_memory_bytes"] = info.memory;
    environment["cuda_driver"] = info.cuda_driver;
    environment["cuda_runtime"] = info.cuda_runtime;
    environment.update(nvml_state(info.pci_bus));
  }
  return environment;
}

}  // namespace feedrate
