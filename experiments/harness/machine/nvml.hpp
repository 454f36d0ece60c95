#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/harness/machine/gpu_sample.hpp"

namespace feedrate {

/// Driver version, clocks, throttle reasons and PCIe link of the GPU at `pci_bus`, from NVML, which is loaded at run
/// time. Returns an empty object if NVML is missing.
nlohmann::json nvml_state(const std::string& pci_bus);

/// Returns a source that queries NVML for the GPU at `pci_bus` from any thread. NVML remains loaded while the source or
/// a copy exists. Creating a source takes tens of milliseconds, so create it once. Empty if there is no such GPU or no
/// NVML.
GpuSource nvml_source(const std::string& pci_bus);

}  // namespace feedrate
