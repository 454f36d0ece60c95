#include "experiments/harness/machine/gpu_sample.hpp"

#include <fmt/format.h>

#include <array>

namespace feedrate {

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

}  // namespace feedrate
