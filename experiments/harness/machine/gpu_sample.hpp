#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace feedrate {

/// What a GPU says of itself at one moment. Not every GPU, driver and container says everything: the rest is absent.
struct GpuSample {
  std::optional<double> energy_j;  ///< since the driver was loaded; read first, so it belongs to the sample's begin
  /// From the host and to the host, over 20 ms of this sample. NVML counts in KB and doesn't say which; taken as 1000.
  std::optional<double> pcie_rx_bytes_per_second, pcie_tx_bytes_per_second;
  std::optional<double> sm_clock_mhz, sm_clock_limit_mhz, memory_clock_mhz;
  std::optional<double> power_w;                          ///< over the last second, on recent GPUs
  std::optional<double> utilisation, memory_utilisation;  ///< share of the driver's last interval, up to 1 s, 0 to 1
  std::optional<double> temperature_c;
  std::optional<std::uint64_t> clock_reasons;  ///< bits of `clock_reason`
};

/// Samples the GPU; nothing where it can't be asked. `with_pcie` costs some 40 ms more, mostly asleep. Must not throw.
using GpuSource = std::function<std::optional<GpuSample>(bool with_pcie)>;

/// Why a GPU's clocks are not at their highest: NVML's nvmlClocksEventReasons.
namespace clock_reason {
inline constexpr std::uint64_t kIdle = 0x1, kApplicationClocks = 0x2, kPowerCap = 0x4, kHardwareSlowdown = 0x8,
                               kSyncBoost = 0x10, kSoftwareThermal = 0x20, kHardwareThermal = 0x40, kPowerBrake = 0x80,
                               kDisplayClocks = 0x100;
}  // namespace clock_reason

/// In words, by ascending bit; a bit without a name as its number ("0x200").
std::vector<std::string> clock_reason_names(std::uint64_t reasons);

}  // namespace feedrate
