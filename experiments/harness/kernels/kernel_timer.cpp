#include "experiments/harness/kernels/kernel_timer.hpp"

#include <algorithm>
#include <memory>

#include "common/clock.hpp"

namespace feedrate {
namespace {

/// Clock and power of the GPU. A reading takes longer than many kernels, so the GPU is read at most every 10 ms.
class Watch {
 public:
  explicit Watch(const GpuSource& source) : source_(source) {}
  void note(KernelSample& sample) {
    constexpr std::uint64_t kPeriodNs = 10'000'000;
    if (!source_) return;
    if (const auto now = now_ns(); now - asked_ns_ >= kPeriodNs) {
      last_ = source_(false);
      asked_ns_ = now;
    }
    if (!last_) return;
    sample.sm_clock_mhz = last_->sm_clock_mhz;
    sample.power_w = last_->power_w;
  }

 private:
  const GpuSource& source_;
  std::optional<GpuSample> last_;
  std::uint64_t asked_ns_ = 0;
};

Json range_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {{"least", values.front()}, {"median", values[values.size() / 2]}, {"greatest", values.back()}};
}

}  // namespace

std::vector<KernelSample> time_kernel(Device& device, const std::function<void(Stream&, std::size_t)>& launch,
                                      const KernelTiming& timing, const GpuSource& watched,
                                      const std::function<bool()>& stop) {
  const auto stream = device.stream();
  const auto begin = device.event(true), end = device.event(true);
  std::optional<CacheFlush> flush;
  if (timing.cold) flush.emplace(device);
  std::unique_ptr<Graph> graph;
  if (timing.captured) {
    graph = device.capture([&](Stream& capturing) {
      for (unsigned i = 0; i < timing.launches; ++i) launch(capturing, i);
    });
  }
  std::size_t number = 0;
  const auto sample = [&] {
    if (graph) return graph->launch(*stream);
    for (unsigned i = 0; i < timing.launches; ++i) launch(*stream, number++);
  };
  if (graph) graph->launch(*stream);  // the first launch uploads the graph
  for (unsigned i = 0; i < timing.warmup; ++i) sample();
  stream->synchronize();
  Watch watch(watched);
  std::vector<KernelSample> samples;
  const std::uint64_t last = now_ns() + static_cast<std::uint64_t>(timing.seconds * 1e9);
  while (samples.size() < timing.most && (samples.size() < timing.least || now_ns() < last) && !stop()) {
    if (flush) flush->queue(*stream);
    stream->record(*begin);
    sample();
    stream->record(*end);
    stream->synchronize();
    samples.push_back({end->ns_since(*begin) / timing.launches, {}, {}});
    watch.note(samples.back());
  }
  return samples;
}

Json describe(const std::vector<KernelSample>& samples) {
  Json told{{"count", samples.size()}};
  const auto add = [&](const char* name, std::optional<double> KernelSample::*field) {
    std::vector<double> values;
    for (const KernelSample& sample : samples) {
      if (sample.*field) values.push_back(*(sample.*field));
    }
    if (!values.empty()) told[name] = range_of(std::move(values));
  };
  add("sm_clock_mhz", &KernelSample::sm_clock_mhz);
  add("power_w", &KernelSample::power_w);
  return told;
}

Json to_json(const KernelResources& resources) {
  return {{"registers", resources.registers},
          {"local_bytes", resources.local_bytes},
          {"shared_bytes", resources.shared_bytes},
          {"blocks_per_sm", resources.blocks_per_sm},
          {"capability", resources.capability}};
}

}  // namespace feedrate
