#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace feedrate {

/// Driver version, clocks, throttle reasons and PCIe link of the GPU at `pci_bus`, from NVML, which is loaded at run
/// time; an empty object where it is missing.
nlohmann::json nvml_state(const std::string& pci_bus);

}  // namespace feedrate
