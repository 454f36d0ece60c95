#pragma once
#include <unistd.h>

#include <array>

#include "tests/cli/feedrate_process.hpp"
#include "tests/cli/gpu_memory.hpp"

namespace feedrate::cli_test {

/// Origin of a test's figures: the host, its first GPU if `device` is a GPU, and the executable's version, which
/// includes the revision.
inline Json provenance(Workplace& place, const std::string& device) {
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return Json{{"host", std::string(host.data())},
              {"gpu", device == "cpu" ? Json() : Json(first_line(nvidia_smi("gpu=name")))},
              {"version", first_line(place.run({"--version"}).out)}};
}

}  // namespace feedrate::cli_test
