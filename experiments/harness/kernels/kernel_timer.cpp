#include "experiments/harness/kernels/kernel_timer.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "common/clock.hpp"

namespace feedrate {
namespace {

/// Clock, power and energy of the GPU, read every 10 ms. A reading takes milliseconds, so a thread of its own reads,
/// and the GPU does not idle meanwhile.
class Watch {
 public:
  explicit Watch(const GpuSource& source) {
    if (!source) return;
    last_ = source(false);
    thread_ = std::jthread([this, source](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        const auto read = source(false);
        const auto now = now_ns();
        const std::scoped_lock lock(mutex_);
        last_ = read;
        read_ns_ = now;
      }
    });
  }
  void note(KernelSample& sample) {
    const std::scoped_lock lock(mutex_);
    if (!last_) return;
    sample.sm_clock_mhz = last_->sm_clock_mhz;
    sample.power_w = last_->power_w;
    sample.temperature_c = last_->temperature_c;
    sample.clock_reasons = last_->clock_reasons.value_or(0);
    if (read_ns_ == noted_ns_) return;
    sample.energy_j = last_->energy_j;
    sample.energy_at_ns = noted_ns_ = read_ns_;
  }

 private:
  std::mutex mutex_;
  std::optional<GpuSample> last_;
  std::uint64_t read_ns_ = 0, noted_ns_ = 0;
  std::jthread thread_;  // declared last because it uses all of the above
};

Json range_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {{"least", values.front()}, {"median", values[values.size() / 2]}, {"greatest", values.back()}};
}

}  // namespace

std::vector<std::vector<KernelSample>> time_in_turn(Device& device, const std::vector<TimedKernel>& kernels,
                                                    const KernelTiming& timing, const GpuSource& watched,
                                                    const std::function<bool()>& stop) {
  const auto stream = device.stream();
  const auto begin = device.event(true), end = device.event(true);
  std::optional<CacheFlush> flush;
  if (timing.cold) flush.emplace(device);
  std::vector<std::unique_ptr<Graph>> graphs(kernels.size());
  std::vector<std::size_t> numbers(kernels.size());
  const auto sample = [&](std::size_t kernel) {
    if (graphs[kernel]) return graphs[kernel]->launch(*stream);
    for (unsigned i = 0; i < kernels[kernel].launches; ++i) kernels[kernel].queue(*stream, numbers[kernel]++);
  };
  for (std::size_t kernel = 0; kernel < kernels.size(); ++kernel) {
    if (timing.captured) {
      graphs[kernel] = device.capture([&](Stream& capturing) {
        for (unsigned i = 0; i < kernels[kernel].launches; ++i) kernels[kernel].queue(capturing, i);
      });
      graphs[kernel]->launch(*stream);  // the first launch uploads the graph
    }
    for (unsigned i = 0; i < timing.warmup; ++i) sample(kernel);
  }
  stream->synchronize();
  Watch watch(watched);
  std::vector<std::vector<KernelSample>> samples(kernels.size());
  const auto time = [&](std::size_t kernel) {
    if (timing.pause_ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(timing.pause_ms));
    if (flush) flush->queue(*stream);
    stream->record(*begin);
    sample(kernel);
    stream->record(*end);
    stream->synchronize();
    KernelSample& timed = samples[kernel].emplace_back();
    timed.ns = end->ns_since(*begin) / kernels[kernel].launches;
    watch.note(timed);
  };
  const std::uint64_t last = now_ns() + static_cast<std::uint64_t>(timing.seconds * 1e9);
  const auto count = [&] { return samples.front().size(); };
  while (count() < timing.most && (count() < timing.least || now_ns() < last) && !stop()) {
    const bool backwards = count() % 2 != 0;
    for (std::size_t i = 0; i < kernels.size(); ++i) time(backwards ? kernels.size() - 1 - i : i);
  }
  return samples;
}

std::vector<KernelSample> time_kernel(Device& device, const QueueKernel& launch, const KernelTiming& timing,
                                      const GpuSource& watched, const std::function<bool()>& stop) {
  return std::move(time_in_turn(device, {{launch, timing.launches}}, timing, watched, stop).front());
}

std::optional<double> energy_of_launch(const std::vector<KernelSample>& samples, unsigned launches) {
  constexpr std::uint64_t kLeastNs = 150'000'000;
  std::vector<std::size_t> moves;  // samples at whose reading the counter had moved
  std::optional<double> known;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto& energy = samples[i].energy_j;
    if (!energy) continue;
    if (known && *energy != *known) moves.push_back(i);
    known = energy;
  }
  if (moves.empty()) return std::nullopt;
  const KernelSample &first = samples[moves.front()], &last = samples[moves.back()];
  if (last.energy_at_ns - first.energy_at_ns < kLeastNs) return std::nullopt;
  return (*last.energy_j - *first.energy_j) / static_cast<double>((moves.back() - moves.front()) * launches);
}

Json describe(const std::vector<KernelSample>& samples) {
  Json described{{"count", samples.size()}};
  const auto add = [&](const char* name, std::optional<double> KernelSample::*field) {
    std::vector<double> values;
    for (const KernelSample& sample : samples) {
      if (sample.*field) values.push_back(*(sample.*field));
    }
    if (!values.empty()) described[name] = range_of(std::move(values));
  };
  add("sm_clock_mhz", &KernelSample::sm_clock_mhz);
  add("power_w", &KernelSample::power_w);
  add("temperature_c", &KernelSample::temperature_c);
  std::uint64_t reasons = 0;
  for (const KernelSample& sample : samples) reasons |= sample.clock_reasons;
  if (reasons != 0) described["clock_reasons"] = clock_reason_names(reasons);
  return described;
}

Json to_json(const KernelResources& resources) {
  return {{"registers", resources.registers},
          {"local_bytes", resources.local_bytes},
          {"shared_bytes", resources.shared_bytes},
          {"blocks_per_sm", resources.blocks_per_sm},
          {"capability", resources.capability}};
}

}  // namespace feedrate
