#pragma once
#include <memory>
#include <string>
#include <vector>

#include <feedrate/ring.hpp>

namespace feedrate::python {

/// A result is its message.
std::unique_ptr<Kernel> make_echo();

struct GpuInfo {
  int index = 0;
  std::string name;
  std::size_t memory_bytes = 0;
  int processors = 0;      // SMs
  std::string capability;  // "9.0"
};
/// Every GPU that this process may use; none where there is no driver, or no CUDA in this build.
std::vector<GpuInfo> gpus();

}  // namespace feedrate::python
