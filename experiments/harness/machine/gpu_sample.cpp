#include "experiments/harness/machine/gpu_sample.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <memory>

namespace feedrate {
namespace {

// The part of NVML's C interface that is used here; the CUDA compiler's packages do not include its header.
using NvmlDevice = void*;
enum NvmlClock { kSmClock = 1, kMemoryClock = 2 };
enum NvmlPcieCounter { kTransmitted = 0, kReceived = 1 };  // seen from the GPU
enum NvmlSensor { kGpuSensor = 0 };
struct NvmlUtilization {
  unsigned gpu, memory;  // utilisation in percent
};

struct Closer {
  void operator()(void* library) const { dlclose(library); }
};

class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    auto* init = function<int()>("nvmlInit_v2");
    ready_ = init != nullptr && init() == 0;
  }
  ~Nvml() {
    if (ready_) call<>("nvmlShutdown");
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Calls an NVML function; returns false if it is missing or fails.
  template <class... Args>
  bool call(const char* name, Args... args) const {
    auto* f = ready_ ? function<int(Args...)>(name) : nullptr;
    return f != nullptr && f(args...) == 0;
  }

 private:
  template <class Signature>
  Signature* function(const char* name) const {
    return library_ ? reinterpret_cast<Signature*>(dlsym(library_.get(), name)) : nullptr;
  }
  std::unique_ptr<void, Closer> library_;
  bool ready_ = false;
};

NvmlDevice device_at(const Nvml& nvml, const std::string& pci_bus) {
  NvmlDevice device = nullptr;
  nvml.call<const char*, NvmlDevice*>("nvmlDeviceGetHandleByPciBusId_v2", pci_bus.c_str(), &device);
  return device;
}

std::optional<std::uint64_t> clock_reasons(const Nvml& nvml, NvmlDevice device) {
  unsigned long long reasons = 0;
  // Drivers since version 535 have the first name, older ones only the second.
  for (const char* name : {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}) {
    if (nvml.call<NvmlDevice, unsigned long long*>(name, device, &reasons)) return reasons;
  }
  return std::nullopt;
}

GpuSample sample(const Nvml& nvml, NvmlDevice device, bool with_pcie) {
  const auto ask = [&](double unit, const char* function, auto... args) -> std::optional<double> {
    unsigned value = 0;
    if (!nvml.call<NvmlDevice, decltype(args)..., unsigned*>(function, device, args..., &value)) return std::nullopt;
    return unit * value;
  };
  GpuSample sample;
  unsigned long long millijoules = 0;
  if (nvml.call<NvmlDevice, unsigned long long*>("nvmlDeviceGetTotalEnergyConsumption", device, &millijoules)) {
    sample.energy_j = 1e-3 * static_cast<double>(millijoules);
  }
  // Read before the clocks, so that the clocks of a phase's first sample are read about 40 ms into the load.
  if (with_pcie) {
    sample.pcie_rx_bytes_per_second = ask(1e3, "nvmlDeviceGetPcieThroughput", int{kReceived});
    sample.pcie_tx_bytes_per_second = ask(1e3, "nvmlDeviceGetPcieThroughput", int{kTransmitted});
  }
  sample.sm_clock_mhz = ask(1, "nvmlDeviceGetClockInfo", int{kSmClock});
  sample.sm_clock_limit_mhz = ask(1, "nvmlDeviceGetMaxClockInfo", int{kSmClock});
  sample.memory_clock_mhz = ask(1, "nvmlDeviceGetClockInfo", int{kMemoryClock});
  sample.clock_reasons = clock_reasons(nvml, device);
  sample.power_w = ask(1e-3, "nvmlDeviceGetPowerUsage");
  sample.temperature_c = ask(1, "nvmlDeviceGetTemperature", int{kGpuSensor});
  NvmlUtilization utilization{};
  if (nvml.call<NvmlDevice, NvmlUtilization*>("nvmlDeviceGetUtilizationRates", device, &utilization)) {
    sample.utilisation = 1e-2 * utilization.gpu;
    sample.memory_utilisation = 1e-2 * utilization.memory;
  }
  return sample;
}

}  // namespace

std::vector<std::string> clock_reason_names(std::uint64_t reasons) {
  constexpr std::array<const char*, 9> kNames{
      "idle",          "application clocks", "power cap",        "hardware slowdown",
      "sync boost",    "software thermal",   "hardware thermal", "power brake",
      "display clocks"};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if ((reasons & bit) != 0) names.push_back(i < kNames.size() ? kNames.at(i) : fmt::format("{:#x}", bit));
  }
  return names;
}

nlohmann::json nvml_state(const std::string& pci_bus) {
  auto state = nlohmann::json::object();
  const Nvml nvml;
  std::array<char, 96> version{};
  if (nvml.call<char*, unsigned>("nvmlSystemGetDriverVersion", version.data(), version.size())) {
    state["driver_version"] = version.data();
  }
  NvmlDevice device = device_at(nvml, pci_bus);
  if (device == nullptr) return state;
  std::array<char, 96> uuid{};
  if (nvml.call<NvmlDevice, char*, unsigned>("nvmlDeviceGetUUID", device, uuid.data(), uuid.size())) {
    state["gpu_uuid"] = uuid.data();
  }
  const auto ask = [&](const char* key, const char* function, auto... args) {
    unsigned value = 0;
    if (nvml.call<NvmlDevice, decltype(args)..., unsigned*>(function, device, args..., &value)) state[key] = value;
  };
  ask("gpu_clock_mhz", "nvmlDeviceGetClockInfo", int{kSmClock});
  ask("gpu_memory_clock_mhz", "nvmlDeviceGetClockInfo", int{kMemoryClock});
  ask("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration");
  ask("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth");
  if (const auto reasons = clock_reasons(nvml, device)) {
    const auto names = clock_reason_names(*reasons);
    state["throttle_reasons"] = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  }
  return state;
}

GpuSource nvml_source(const std::string& pci_bus) {
  if (pci_bus.empty()) return {};
  const auto nvml = std::make_shared<const Nvml>();
  NvmlDevice device = device_at(*nvml, pci_bus);
  if (device == nullptr) return {};
  return [nvml, device](bool with_pcie) { return std::optional(sample(*nvml, device, with_pcie)); };
}

}  // namespace feedrate
