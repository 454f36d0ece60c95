#include "experiments/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <memory>
#include <utility>

namespace feedrate {
namespace {

// NVML's C interface, as far as it is used here; its header is no part of the CUDA compiler's packages.
using NvmlDevice = void*;
enum NvmlClock { kSmClock = 1, kMemoryClock = 2 };

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

  /// False when the function is missing or fails.
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

/// The reasons that slow a GPU down, by the bits of NVML's nvmlClocksEventReasons.
std::string reasons_text(unsigned long long reasons) {
  constexpr std::array<std::pair<unsigned long long, const char*>, 8> names{{{0x1, "idle"},
                                                                             {0x2, "application clocks"},
                                                                             {0x4, "power cap"},
                                                                             {0x8, "hardware slowdown"},
                                                                             {0x20, "software thermal"},
                                                                             {0x40, "hardware thermal"},
                                                                             {0x80, "power brake"},
                                                                             {0x100, "display clocks"}}};
  std::string text;
  for (const auto& [bit, name] : names) {
    if ((reasons & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

nlohmann::json nvml_state(const std::string& pci_bus) {
  auto state = nlohmann::json::object();
  const Nvml nvml;
  std::array<char, 96> version{};
  if (nvml.call<char*, unsigned>("nvmlSystemGetDriverVersion", version.data(), version.size())) {
    state["driver_version"] = version.data();
  }
  NvmlDevice device = nullptr;
  if (!nvml.call<const char*, NvmlDevice*>("nvmlDeviceGetHandleByPciBusId_v2", pci_bus.c_str(), &device)) return state;
  const auto ask = [&](const char* key, const char* function, auto... args) {
    unsigned value = 0;
    if (nvml.call<NvmlDevice, decltype(args)..., unsigned*>(function, device, args..., &value)) state[key] = value;
  };
  ask("gpu_clock_mhz", "nvmlDeviceGetClockInfo", int{kSmClock});
  ask("gpu_memory_clock_mhz", "nvmlDeviceGetClockInfo", int{kMemoryClock});
  ask("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration");
  ask("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth");
  unsigned long long reasons = 0;
  if (nvml.call<NvmlDevice, unsigned long long*>("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons)) {
    state["throttle_reasons"] = reasons_text(reasons);
  }
  return state;
}

}  // namespace feedrate
