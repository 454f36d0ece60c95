#include <spdlog/spdlog.h>

#include <algorithm>
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

constexpr std::size_t kBytes = LimitProbe::kLarge;

/// One GPU with the buffers of its copies.
class Copies {
 public:
  explicit Copies(unsigned gpu)
      : device_(open_device("cuda", gpu)),
        host_in_(device_->allocate_host(kBytes, HostMemory::pinned)),
        host_out_(device_->allocate_host(kBytes, HostMemory::pinned)),
        near_in_(device_->allocate_device(kBytes)),
        near_out_(device_->allocate_device(kBytes)),
        to_device_(device_->stream()),
        to_host_(device_->stream()) {}

  /// Bytes per second; of both ways together, each way.
  double rate(bool in, bool out) {
    device_->use_in_this_thread();
    return kBytes * per_second(kReadingSeconds, [&] {
             if (in) to_device_->copy_to_device(near_in_.data(), host_in_.data(), kBytes);
             if (out) to_host_->copy_to_host(host_out_.data(), near_out_.data(), kBytes);
             to_device_->synchronize();
             to_host_->synchronize();
           });
  }

 private:
  std::unique_ptr<Device> device_;
  Buffer host_in_, host_out_, near_in_, near_out_;
  std::unique_ptr<Stream> to_device_, to_host_;  // last: they use the buffers
};

/// The sum of their rates while all of them copy.
double rate_of_all(std::vector<std::unique_ptr<Copies>>& gpus, bool in, bool out) {
  std::barrier begin(static_cast<std::ptrdiff_t>(gpus.size()));
  std::vector<std::future<double>> rates;
  for (const auto& gpu : gpus) {
    rates.push_back(std::async(std::launch::async, [&] {
      begin.arrive_and_wait();
      return gpu->rate(in, out);
    }));
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0, [](double sum, auto& rate) { return sum + rate.get(); });
}

struct Way {
  const char *name, *method;
  bool in, out;
};
constexpr Way kWays[] = {{"h2d", "64 MiB copies from pinned memory", true, false},
                         {"d2h", "64 MiB copies to pinned memory", false, true},
                         {"both", "64 MiB copies from and to pinned memory at once, each way", true, true}};

}  // namespace

void add_copies_of_all_gpus(LimitList& limits, unsigned gpus) {
  std::vector<std::unique_ptr<Copies>> opened;
  try {
    for (unsigned gpu = 0; limits.measures() && gpu < gpus; ++gpu) opened.push_back(std::make_unique<Copies>(gpu));
  } catch (const Failure& failure) {  // another process may fill a GPU
    spdlog::warn("the copies of all GPUs are left out: GPU {}: {}", opened.size(), failure.what());
    return;
  }
  for (const Way& way : kWays) {
    const std::string name = std::string("copy_engine_") + way.name + "_bytes_per_second";
    for (unsigned gpu = 0; gpu < gpus; ++gpu) {
      limits.add({name, kBytesPerSecond, bus_scope(gpu), way.method},
                 [&, gpu] { return opened[gpu]->rate(way.in, way.out); });
    }
    limits.add({"all_copy_engines_" + std::string(way.name) + "_bytes_per_second",
                kBytesPerSecond,
                {"link", "host all GPUs"},
                std::string("of all GPUs together: ") + way.method},
               [&] { return rate_of_all(opened, way.in, way.out); });
  }
}

}  // namespace feedrate
