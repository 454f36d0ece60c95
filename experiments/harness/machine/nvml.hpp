#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/harness/machine/gpu_sample.hpp"

namespace feedrate {

/// Driver version, clocks, throttle reasons and PCIe link of the GPU at `pci_bus`, from NVML, which is loaded at run
/// time; an empty object where it is missing.
nlohmann::json nvml_state(const std::string& pci_bus);

/// Asks NVML about the GPU at `pci_bus`, from any thread; NVML stays loaded while the source or a copy of it lives.
/// Making it takes tens of milliseconds, so make it once. Empty where there is no such GPU, or no NVML.
GpuSource nvml_source(const std::string& pci_bus);

}  // namespace feedrate
