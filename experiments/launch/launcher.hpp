#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "common/device/device.hpp"

namespace feedrate::launch {

/// How null kernels are launched by one thread.
struct Shape {
  std::string form = "plain";  ///< plain, graph or pdl
  unsigned kernels = 1;        ///< in one unit: launched one after the other, or as one graph
  unsigned streams = 1;        ///< units go to them by turns
  unsigned block = 32;         ///< threads of a kernel, one block each
  bool counted = false;        ///< each kernel adds one to a counter, to verify that all of them run
};

/// Launches units of kernels that do nothing. Used by one thread. Calls throw Failure when the device refuses.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// Queues one unit.
  virtual void launch() = 0;
  /// Returns when all that was queued is done.
  virtual void wait() = 0;
  /// How many counted kernels have run, once nothing is queued.
  virtual std::uint64_t counted() = 0;
};

/// Why this form can't be on this device; empty when it can.
std::string refuse(const Shape&, Device&);
std::unique_ptr<Launcher> make_launcher(const Shape&, Device&);

/// In builds with CUDA.
std::string refuse_on_cuda(const Shape&);
std::unique_ptr<Launcher> make_cuda_launcher(const Shape&);

}  // namespace feedrate::launch
