#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace feedrate {

/// State of a GPU at one moment. Values that the GPU, driver or container does not report are absent.
struct GpuSample {
  std::optional<double> energy_j;  ///< since the driver was loaded; read first, at the start of the sample
  /// From the host and to the host, over 20 ms of this sample. NVML counts in KB without defining the unit; 1000 bytes
  /// are assumed.
  std::optional<double> pcie_rx_bytes_per_second, pcie_tx_bytes_per_second;
  std::optional<double> sm_clock_mhz, sm_clock_limit_mhz, memory_clock_mhz;
  std::optional<double> power_w;  ///< over the last second, on recent GPUs
  std::optional<double> utilisation,
      memory_utilisation;  ///< share (0 to 1) of the driver's last interval of at most 1 s
  std::optional<double> temperature_c;
  std::optional<std::uint64_t> clock_reasons;  ///< bits of `clock_reason`
};

/// Samples the GPU; returns nothing if it cannot be queried. `with_pcie` takes about 40 ms more, mostly asleep. Must
/// not throw.
using GpuSource = std::function<std::optional<GpuSample>(bool with_pcie)>;

/// Reasons why a GPU's clocks are below their maximum: NVML's nvmlClocksEventReasons.
namespace clock_reason {
inline constexpr std::uint64_t kIdle = 0x1, kApplicationClocks = 0x2, kPowerCap = 0x4, kHardwareSlowdown = 0x8,
                               kSyncBoost = 0x10, kSoftwareThermal = 0x20, kHardwareThermal = 0x40, kPowerBrake = 0x80,
                               kDisplayClocks = 0x100;
}  // namespace clock_reason

/// Names of the reasons, by ascending bit; a bit without a name is shown as a number ("0x200").
std::vector<std::string> clock_reason_names(std::uint64_t reasons);

/// Driver version, clocks, throttle reasons and PCIe link of the GPU at `pci_bus`, from NVML, which is loaded at run
/// time. Returns an empty object if NVML is missing.
nlohmann::json nvml_state(const std::string& pci_bus);

/// Returns a source that queries NVML for the GPU at `pci_bus` from any thread. NVML remains loaded while the source or
/// a copy exists. Creating a source takes tens of milliseconds, so create it once. Empty if there is no such GPU or no
/// NVML.
GpuSource nvml_source(const std::string& pci_bus);

}  // namespace feedrate
