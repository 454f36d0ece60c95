#include <filesystem>

#include "common/error.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate {
namespace {

/// Why the CPU can't write into the GPU's memory itself here.
std::string why_not(Device& device) {
  if (device.kind() != "cuda") return "gpudirect needs an NVIDIA GPU";
  std::error_code unreadable;
  if (!std::filesystem::exists("/dev/gdrdrv", unreadable)) {
    return "gpudirect needs the kernel module gdrdrv (GDRCopy), which maps the GPU's memory for the CPU; there is no "
           "/dev/gdrdrv";
  }
  return "gpudirect needs the library GDRCopy, which this build does not have";
}

/// The CPU would write messages into the GPU's memory over the bus, with neither copy engine nor SMs. It is listed so
/// that its place in the comparison is seen, and what a machine lacks for it.
const TransferRegistration registered(
    "gpudirect",
    {.description = "the CPU writes into the GPU's memory itself, through a mapping by GDRCopy",
     .memory = HostMemory::pinned,
     .depth = [](const Point&) { return 1u; },
     .make = [](const TransferConfig& config) -> std::unique_ptr<Transfer> { throw Failure(why_not(config.device)); },
     .refuse = why_not});

}  // namespace
}  // namespace feedrate
