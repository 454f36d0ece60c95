#include "experiments/harness/machine/environment.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "common/error.hpp"
#include "common/redis/connection.hpp"
#include "common/threads/threads.hpp"
#include "experiments/harness/machine/nvml.hpp"
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

/// The settings that change what a server costs or promises.
Json redis_state(const std::string& url, bool is_private) {
  redis::Connection connection(url);
  Json state{{"url", is_private ? "private unix socket" : redis::without_password(url)}};
  const auto info = connection.command({"INFO", "server"});
  const std::string_view text = redis::text(*info);
  constexpr std::string_view kKey = "redis_version:";
  if (const auto at = text.find(kKey); at != text.npos) {
    state["version"] = std::string(text.substr(at + kKey.size(), text.find('\r', at) - at - kKey.size()));
  }
  Json config = Json::object();
  for (const char* name : {"save", "appendonly", "io-threads", "io-threads-do-reads", "maxmemory", "maxmemory-policy",
                           "list-max-listpack-size", "stream-node-max-entries", "stream-node-max-bytes"}) {
    try {
      const auto reply = connection.command({"CONFIG", "GET", name});
      if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) config[name] = redis::text(*reply->element[1]);
    } catch (const Failure&) {  // a managed server may forbid CONFIG
      break;
    }
  }
  state["config"] = std::move(config);
  return state;
}

}  // namespace

std::string version_text() {
  const std::string cuda = FEEDRATE_CUDA_COMPILER;
  return fmt::format("feedrate {} (revision {}, {} {}, CUDA {})", FEEDRATE_VERSION, FEEDRATE_REVISION,
                     FEEDRATE_COMPILER, FEEDRATE_BUILD_TYPE, cuda.empty() ? "none" : cuda);
}

Json environment_of(const Device& device, const std::string& redis_url, bool private_redis,
                    const std::string& command) {
  utsname kernel{};
  uname(&kernel);
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  Json environment{{"host", kernel.nodename},
                   {"os", fmt::format("{}, {} {}", os_name(), kernel.sysname, kernel.release)},
                   {"cpu", cpu_model()},
                   {"cores", available_cores()},
                   {"memory_bytes", pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))},
                   {"gpu", nullptr},
                   {"redis", nullptr},
                   {"version", FEEDRATE_VERSION},
                   {"revision", FEEDRATE_REVISION},
                   {"compiler", FEEDRATE_COMPILER},
                   {"build_type", FEEDRATE_BUILD_TYPE},
                   {"command", command}};
  if (device.kind() == "cuda") {
    const DeviceInfo info = device.info();
    environment["gpu"] = info.name;
    environment["gpu_sms"] = info.processors;
    environment["gpu_memory_bytes"] = info.memory;
    environment["cuda_driver"] = info.cuda_driver;
    environment["cuda_runtime"] = info.cuda_runtime;
    environment.update(nvml_state(info.pci_bus));
  }
  if (!redis_url.empty()) environment["redis"] = redis_state(redis_url, private_redis);
  return environment;
}

}  // namespace feedrate
