#include "variants/overlap/one_stream.hpp"

namespace feedrate {
namespace {

/// Programmatic dependent launch saves the gap between two kernels, not the time of their work.
const StrategyRegistration registered(
    "pdl", {.description = "all stages on one stream by programmatic dependent launch: saves the gaps between kernels",
            .waits = {kEarly},
            .buffers = [](const Values&) { return 1u; },
            .unavailable = [](const DeviceInfo& device) -> std::string {
              if (device.capability >= 90) return "";
              return "strategy pdl needs a GPU of compute capability 9.0 or later";
            },
            .make = make_strategy<OneStreamForAll<true>>});

}  // namespace
}  // namespace feedrate
