#include "experiments/daemons/store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>

#include "common/error.hpp"
#include "common/units.hpp"
#include "common/utf8.hpp"
#include "experiments/daemons/daemon.hpp"
#include "experiments/daemons/metrics.hpp"
#include "libraries/tensors/store/choose_way.hpp"
#include "libraries/tensors/store/daemon.hpp"
#include "libraries/tensors/store/mirror.hpp"

namespace feedrate {
namespace {

using namespace tensors;

constexpr auto kAnyWay = "auto";

std::string node_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

gid_t group_of(const std::string& name) {
  const group* const found = getgrnam(name.c_str());
  if (found == nullptr) throw BadInput("--group", name, "a group of this machine");
  return found->gr_gid;
}

/// Raises the limit on open files: each chunk needs one descriptor and each connection two, which may exceed the
/// default.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// The fastest way to share this GPU's memory. Throws like gpu_memory().
std::string chosen_way(const std::string& device) {
  constexpr std::size_t kProbeBytes = std::size_t{64} << 20;
  std::vector<Candidate> candidates;
  for (const std::string& way : gpu_ways())
    candidates.push_back({way, [way, device] { return gpu_memory(way, device); }});
  const auto costs = measure_ways(candidates, kProbeBytes);
  const auto us = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; };
  for (const WayCost& cost : costs) {
    if (!cost.fault.empty()) {
      spdlog::warn("store: --share {} is not available: {}", cost.name, cost.fault);
    } else {
      spdlog::info("store: --share {}: 64 MiB created in {:.0f} us, mapped in {:.0f} us", cost.name, us(cost.make),
                   us(cost.map));
    }
  }
  const WayCost* const best = cheapest(costs);
  return best != nullptr ? best->name : gpu_ways().front();  // its own error message then gives the reason
}

std::unique_ptr<ChunkMemory> memory_of(const std::string& device, const std::string& way) {
  const auto ways = gpu_ways();
  if (way != kAnyWay && !ways.empty() && std::ranges::find(ways, way) == ways.end()) {
    throw BadInput("--share", way, fmt::format("{}, {}", kAnyWay, fmt::join(ways, ", ")));
  }
  if (device == "cpu") return memfd_memory();
  return gpu_memory(way == kAnyWay && !ways.empty() ? chosen_way(device) : way, device);
}

/// Makes the kernel send SIGTERM to this process when its parent ends for any reason.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    throw BadInput("--parent", std::to_string(parent), "the id of the process that starts this one");
}

struct StoreFigures {
  double limit, chunks, tensor_bytes, tensors, deleted, leases, clients;
};

/// Figures from the daemon's thread; empty if the thread is stuck or has ended.
std::optional<StoreFigures> figures_of(Daemon& daemon) {
  const auto told = std::make_shared<std::promise<StoreFigures>>();
  auto figures = told->get_future();
  daemon.post([told](const Table& table) {
    const auto number = [](auto value) { return static_cast<double>(value); };
    const Arena& arena = table.arena();
    told->set_value({number(arena.limit()), number(arena.reserved()), number(arena.taken()), number(table.tensors()),
                     number(table.deleted()), number(table.leases()), number(table.clients())});
  });
  if (figures.wait_for(std::chrono::seconds(1)) != std::future_status::ready) return std::nullopt;
  return figures.get();
}

/// Metrics of a tensor store.
class StoreSource final : public MetricsSource {
 public:
  explicit StoreSource(Daemon& daemon) : daemon_(daemon) {}
  void collect(const Add& add) override {
    const auto found = figures_of(daemon_);
    if (!found) return;
    const auto tell = [&](const char* name, const char* help, double value) {
      add({kFeedrateGauge, name, help, value});
    };
    tell("feedrate_store_memory_bytes", "Limit on the store's memory in bytes.", found->limit);
    tell("feedrate_store_chunk_bytes", "Bytes of device memory that the store has allocated.", found->chunks);
    tell("feedrate_store_tensor_bytes", "Bytes of tensors.", found->tensor_bytes);
    tell("feedrate_store_tensors", "Tensors that have a name.", found->tensors);
    tell("feedrate_store_deleted_tensors", "Tensors without a name that a process still holds.", found->deleted);
    tell("feedrate_store_leases", "Leases held by all processes.", found->leases);
    tell("feedrate_store_clients", "Connections.", found->clients);
  }
  std::string why_unhealthy() const override {
    return figures_of(daemon_) ? "" : "the store's thread does not respond";
  }

 private:
  Daemon& daemon_;
};

}  // namespace

int serve_store(const StoreServiceOptions& options, const std::vector<std::string>& arguments) {
  if (options.log == "json") log_as_json();
  if (options.parent != 0) {
    if (options.supervise) throw BadInput("--parent", std::to_string(options.parent), "0 with --supervise");
    end_with(options.parent);
  }
  if (options.supervise) return supervise(arguments);
  DaemonOptions how{.socket = options.socket};
  if (!options.group.empty()) how.group = group_of(options.group);
  how.memory = parse_count("--memory", options.memory);
  if (how.memory == 0) throw BadInput("--memory", options.memory, "more than 0 bytes");
  if (const std::uint64_t quota = parse_count("--quota", options.quota); quota != 0) how.limits.bytes_of_client = quota;
  how.limits.tensors = options.max_tensors;
  how.limits.leases_of_client = options.max_leases;
  how.connections = options.max_connections;
  how.device = options.device;
  how.node = utf8_escaped(node_name());
  raise_descriptor_limit();

  const auto memory = memory_of(options.device, options.share);
  Daemon daemon(*memory, how);
  std::optional<Mirror> mirror;
  std::optional<ListControl> list;
  if (!options.redis.empty()) {
    const std::string prefix =
        options.prefix.empty() ? fmt::format("feedrate:store:{}:{}", how.node, how.device) : options.prefix;
    const MirrorOptions mirrored{options.redis, prefix, options.list};
    mirror.emplace(mirrored, daemon);
    if (!options.list.empty()) list.emplace(mirrored, daemon);
  }
  StoreSource source(daemon);
  std::optional<MetricsEndpoint> endpoint;
  if (!options.metrics.empty())
    endpoint.emplace(options.metrics, MetricsEndpoint::Label{"store", options.socket}, source);
  spdlog::info("store: {} of {} at {}", options.memory, options.device, options.socket);
  const StopOnSignal signals;
  daemon.run(signals.token());
  spdlog::info("store: ended; processes keep the memory that they have mapped");
  if (memory->cuda_index() < 0) return 0;
  // CUDA forbids freeing memory that other processes still map. If this process exits without freeing it, the memory
  // stays until they end.
  endpoint.reset();
  list.reset();
  mirror.reset();
  spdlog::shutdown();
  std::_Exit(0);
}

}  // namespace feedrate
