#include "experiments/harness/machine/machine_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace feedrate {
namespace {

constexpr std::size_t kMaxSamples = 120;  // samples take up to 15 KB per row
// Boost clocks of a healthy GPU under load vary by about 10 % with temperature and chip; a drop by a quarter has
// another cause.
constexpr double kLeastClock = 0.75;
// Relative to the CPU time that this process used. Repetitions on quiet machines agree to within about this much.
constexpr double kMaxStolen = 0.02;
// The kernel counts in ticks of 10 ms. One or two ticks may be due to the phase's alignment with them; three are not.
constexpr double kLeastStolenSeconds = 0.025;
// Cores that other processes may use. System services of a quiet machine use less (results/reference: 0.04 to 0.08 at
// the median).
constexpr double kMostOther = 0.1;
// The kernel counts each core in ticks of 10 ms, with an error of up to half a tick at both ends; this many standard
// deviations of the sum are not due to the error.
constexpr double kDeviations = 4, kTickSeconds = 0.01, kTickError = 0.4;

// These slow down a GPU that has work. Drivers also report them for an idle GPU.
constexpr std::uint64_t kUnderLoad = clock_reason::kPowerCap | clock_reason::kSyncBoost | clock_reason::kDisplayClocks;
// These concern the hardware's health and outlast the load that caused them.
constexpr std::uint64_t kAlways = clock_reason::kHardwareSlowdown | clock_reason::kSoftwareThermal |
                                  clock_reason::kHardwareThermal | clock_reason::kPowerBrake;

/// Whether the GPU has work; a polling kernel counts as work.
bool at_work(const GpuSample& gpu) {
  return gpu.clock_reasons ? (*gpu.clock_reasons & clock_reason::kIdle) == 0 : gpu.utilisation.value_or(0) > 0;
}

bool clock_was_chosen(const GpuSample& gpu) {
  return (gpu.clock_reasons.value_or(0) & clock_reason::kApplicationClocks) != 0;
}

/// The clock reasons other than idleness and a user-set clock.
std::uint64_t throttles(const GpuSample& gpu) {
  return gpu.clock_reasons.value_or(0) & (at_work(gpu) ? kUnderLoad | kAlways : kAlways);
}

/// Rounds to the significant digits, because thousands of rows are stored.
double rounded(double value, int decimals) {
  const double scale = std::pow(10, decimals);
  return std::round(value * scale) / scale;
}

struct Field {
  const char* name;
  std::optional<double> GpuSample::*value;
  int decimals;
};
constexpr std::array<Field, 8> kFields{{{"sm_clock_mhz", &GpuSample::sm_clock_mhz, 0},
                                        {"memory_clock_mhz", &GpuSample::memory_clock_mhz, 0},
                                        {"power_w", &GpuSample::power_w, 1},
                                        {"utilisation", &GpuSample::utilisation, 2},
                                        {"memory_utilisation", &GpuSample::memory_utilisation, 2},
                                        {"temperature_c", &GpuSample::temperature_c, 0},
                                        {"pcie_rx_bytes_per_second", &GpuSample::pcie_rx_bytes_per_second, 0},
                                        {"pcie_tx_bytes_per_second", &GpuSample::pcie_tx_bytes_per_second, 0}}};

Json sample_json(const MachineState::Sample& sample) {
  Json gpu = Json::object();
  for (const auto& [name, value, decimals] : kFields) {
    if (sample.gpu.*value) gpu[name] = rounded(*(sample.gpu.*value), decimals);
  }
  if (sample.gpu.clock_reasons) gpu["throttle_reasons"] = clock_reason_names(*sample.gpu.clock_reasons);
  return {{"t", rounded(sample.t, 3)}, {"gpu", std::move(gpu)}};
}

Json gpu_json(const MachineState& state) {
  Json gpu = Json::object();
  for (const auto& [name, value, decimals] : kFields) {
    if (const auto range = range_of(state, value)) gpu[name] = rounded(range->mean, decimals);
  }
  if (const auto clock = range_of(state, &GpuSample::sm_clock_mhz)) {
    gpu["sm_clock_mhz"] = {{"min", clock->min}, {"mean", rounded(clock->mean, 1)}, {"max", clock->max}};
  }
  if (const auto limit = range_of(state, &GpuSample::sm_clock_limit_mhz)) gpu["sm_clock_limit_mhz"] = limit->max;
  if (const auto temperature = range_of(state, &GpuSample::temperature_c)) gpu["temperature_c"] = temperature->max;
  if (const auto energy = energy_j(state)) gpu["energy_j"] = rounded(*energy, 3);
  if (const auto power = power_w(state)) gpu["power_w"] = rounded(*power, 1);
  std::optional<std::uint64_t> reasons;
  for (const auto& [t, sample] : state.samples) {
    if (sample.clock_reasons) reasons = reasons.value_or(0) | *sample.clock_reasons;
  }
  if (reasons) gpu["throttle_reasons"] = clock_reason_names(*reasons);
  return gpu;
}

Json host_json(const HostUse& host) {
  Json json{{"own_cores", rounded(host.own_cores, 3)},
            {"context_switches",
             {{"voluntary", host.own_voluntary_switches}, {"involuntary", host.own_involuntary_switches}}}};
  if (host.system_switches) json["context_switches"]["system"] = *host.system_switches;
  if (host.quota_cores) {
    json["quota"] = {
        {"cores", rounded(*host.quota_cores, 3)}, {"periods", host.periods}, {"throttled", host.throttled}};
  }
  if (host.cores.empty()) return json;
  Json busy = Json::array();
  double worst = 0;
  for (const auto& core : host.cores) {
    busy.push_back(rounded(core.busy, 2));
    worst = std::max(worst, core.steal);
  }
  json["cores"] = host.cores.size();
  json["busy_cores"] = rounded(host.busy_cores(), 3);
  json["other_cores"] = rounded(host.other_cores(), 3);
  json["steal_share"] = rounded(host.stolen_cores() / static_cast<double>(host.cores.size()), 5);
  json["steal_share_highest_core"] = rounded(worst, 4);
  json["per_core_busy"] = std::move(busy);
  return json;
}

std::optional<std::string> held_down(const MachineState& state) {
  std::uint64_t reasons = 0;
  std::size_t samples = 0;
  const std::uint64_t counted = state.expects_power_cap ? ~clock_reason::kPowerCap : ~std::uint64_t{0};
  for (const auto& [t, gpu] : state.samples) {
    reasons |= throttles(gpu) & counted;
    samples += (throttles(gpu) & counted) != 0;
  }
  if (reasons == 0) return std::nullopt;
  const auto clock = range_of(state, &GpuSample::sm_clock_mhz);
  return fmt::format("the GPU's clocks were held down by {} in {} of {} samples{}",
                     fmt::join(clock_reason_names(reasons), ", "), samples, state.samples.size(),
                     clock ? fmt::format(", the SM clock between {:.0f} and {:.0f} MHz", clock->min, clock->max) : "");
}

std::optional<std::string> slow_clock(const MachineState& state) {
  const GpuSample* slowest = nullptr;
  const auto share = [](const GpuSample& gpu) { return *gpu.sm_clock_mhz / *gpu.sm_clock_limit_mhz; };
  for (const auto& [t, gpu] : state.samples) {
    if (!gpu.sm_clock_mhz || gpu.sm_clock_limit_mhz.value_or(0) <= 0 || !at_work(gpu) || clock_was_chosen(gpu))
      continue;
    if (state.expects_power_cap && (throttles(gpu) & clock_reason::kPowerCap) != 0) continue;
    if (slowest == nullptr || share(gpu) < share(*slowest)) slowest = &gpu;
  }
  if (slowest == nullptr || share(*slowest) >= kLeastClock) return std::nullopt;
  return fmt::format("the SM clock fell to {:.0f} of {:.0f} MHz under load, {:.0f} % (at least {:.0f} % is normal)",
                     *slowest->sm_clock_mhz, *slowest->sm_clock_limit_mhz, 100 * share(*slowest), 100 * kLeastClock);
}

std::optional<std::string> stolen(const HostUse& host) {
  const double stolen = host.stolen_cores() * host.seconds, used = host.own_cores * host.seconds;
  if (stolen <= kLeastStolenSeconds || stolen <= kMaxStolen * used) return std::nullopt;
  return fmt::format(
      "the hypervisor stole {:.2f} s of CPU time while this process used {:.2f} s (up to {:.0f} % of that "
      "is normal)",
      stolen, used, 100 * kMaxStolen);
}

/// Threads of a group that has used up its quota wait for the next period, up to 100 ms.
std::optional<std::string> throttled(const HostUse& host) {
  if (!host.quota_cores || host.throttled == 0) return std::nullopt;
  return fmt::format("the CPU quota of {:.2g} cores was used up in {} of {} periods", *host.quota_cores, host.throttled,
                     host.periods);
}

/// Other processes that run while all cores are busy take cores from this one. Whether this process's own threads share
/// cores is not a disturbance: it would happen again.
std::optional<std::string> neighbours(const MachineState& state) {
  const HostUse& host = state.host;
  const auto cores = static_cast<double>(host.cores.size());
  if (host.cores.empty() || host.seconds <= 0) return std::nullopt;
  const double idle = cores - host.busy_cores(), other = host.other_cores() - host.children_cores - state.service_cores;
  const double error = kDeviations * kTickError * std::sqrt(cores) * kTickSeconds / host.seconds;
  if (idle >= 1 || other <= std::max(kMostOther, error)) return std::nullopt;
  return fmt::format("other processes used {:.2f} cores while only {:.2f} of {} were idle (up to {:.2f} is normal)",
                     other, idle, host.cores.size(), std::max(kMostOther, error));
}

}  // namespace

std::optional<Range> range_of(const MachineState& state, std::optional<double> GpuSample::*value) {
  std::optional<Range> range;
  double sum = 0, count = 0;
  for (const auto& [t, gpu] : state.samples) {
    if (!(gpu.*value)) continue;
    const double x = *(gpu.*value);
    if (!range) range = {x, x, x};
    sum += x;
    range = {std::min(range->min, x), sum / ++count, std::max(range->max, x)};
  }
  return range;
}

std::optional<double> energy_j(const MachineState& state) {
  if (state.samples.size() < 2) return std::nullopt;
  const auto &first = state.samples.front().gpu.energy_j, &last = state.samples.back().gpu.energy_j;
  if (!first || !last || *last <= *first) return std::nullopt;
  return *last - *first;
}

std::optional<double> power_w(const MachineState& state) {
  if (const auto energy = energy_j(state)) {
    if (const double seconds = state.samples.back().t - state.samples.front().t; seconds > 0) return *energy / seconds;
  }
  const auto sampled = range_of(state, &GpuSample::power_w);
  return sampled ? std::optional(sampled->mean) : std::nullopt;
}

Json to_json(const MachineState& state) {
  const std::size_t all = state.samples.size(), kept = std::min(all, kMaxSamples);
  Json samples = Json::array();
  for (std::size_t i = 0; i < kept; ++i) {  // always includes the first and the last
    samples.push_back(sample_json(state.samples[kept < 2 ? i : i * (all - 1) / (kept - 1)]));
  }
  Json json{{"period_seconds", state.period_seconds},
            {"samples", std::move(samples)},
            {"host", host_json(state.host)},
            {"sample_cost_seconds_max", rounded(state.sample_cost_seconds_max, 6)},
            {"sample_cpu_seconds_max", rounded(state.sample_cpu_seconds_max, 6)}};
  json["disturbances"] = Json::array();
  for (const Disturbance& each : disturbances(state)) json["disturbances"].push_back(each.text);
  if (all != 0) json["gpu"] = gpu_json(state);
  return json;
}

std::vector<Disturbance> disturbances(const MachineState& state) {
  std::vector<Disturbance> found;
  const auto add = [&](std::optional<std::string> text, bool excludes) {
    if (text) found.push_back({std::move(*text), excludes});
  };
  add(neighbours(state), true);
  add(throttled(state.host), true);
  add(held_down(state), false);
  add(slow_clock(state), false);
  add(stolen(state.host), false);
  return found;
}

}  // namespace feedrate
