#include <spdlog/spdlog.h>

#include <barrier>
#include <future>
#include <memory>
#include <numeric>
#include <vector>

#include "common/error.hpp"
#include "common/limits/device_limit.hpp"
#include "experiments/harness/limits/device_limits.hpp"

namespace feedrate {
namespace {

/// One GPU with the buffers for its copies, which are allocated before any timing.
struct Opened {
  explicit Opened(unsigned gpu) : device(open_device("cuda", gpu)) {
    for (const std::size_t which : {0, 1}) probe.host(which), probe.near(which);
  }
  double read(const DeviceLimit& limit) {
    device->use_in_this_thread();
    return limit.measure(probe);
  }
  std::unique_ptr<Device> device;
  LimitProbe probe{*device};
};
using AllOpened = std::vector<std::unique_ptr<Opened>>;

/// The sum of the GPUs' rates while all of them copy.
double rate_of_all(const AllOpened& gpus, const DeviceLimit& limit) {
  std::barrier begin(static_cast<std::ptrdiff_t>(gpus.size()));
  std::vector<std::future<double>> rates;
  for (const auto& gpu : gpus) {
    rates.push_back(std::async(std::launch::async, [&] {
      begin.arrive_and_wait();
      return gpu->read(limit);
    }));
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0, [](double sum, auto& rate) { return sum + rate.get(); });
}

}  // namespace

void add_limits_of_all_gpus(LimitList& limits, unsigned gpus) {
  AllOpened opened;
  try {
    for (unsigned gpu = 0; limits.measures() && gpu < gpus; ++gpu) opened.push_back(std::make_unique<Opened>(gpu));
  } catch (const Failure& failure) {  // another process may use all memory of a GPU
    spdlog::warn("limits of all GPUs are skipped: GPU {}: {}", opened.size(), failure.what());
    return;
  }
  for (const auto& [name, limit] : DeviceLimits::instance().entries()) {
    if (!limit.of_all_gpus) continue;
    for (unsigned gpu = 0; gpu < gpus; ++gpu) {
      limits.add({name, limit.quantity, bus_scope(gpu), limit.method}, [&, gpu] { return opened[gpu]->read(limit); });
    }
    limits.add({"all_gpus_" + name, limit.quantity, {"link", "host all GPUs"}, "all GPUs together: " + limit.method},
               [&] { return rate_of_all(opened, limit); });
  }
}

}  // namespace feedrate
