#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "common/device/device.hpp"

namespace feedrate::launch {

/// Settings with which one thread launches empty kernels.
struct Shape {
  std::string form = "plain";  ///< plain, graph or pdl
  unsigned kernels = 1;        ///< kernels per unit, launched one after another or as one graph
  unsigned streams = 1;        ///< streams that units use in turn
  unsigned block = 32;         ///< threads per kernel, in one block
  bool counted = false;        ///< each kernel increments a counter, to verify that all kernels run
};

/// Launches units of empty kernels. For use by one thread. Calls throw Failure if the device reports an error.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// Queues one unit.
  virtual void launch() = 0;
  /// Returns when all queued work has completed.
  virtual void wait() = 0;
  /// Number of counted kernels that have run. Call it when nothing is queued.
  virtual std::uint64_t counted() = 0;
};

/// Reason why this device does not support the form; empty if it does.
std::string why_unsupported(const Shape&, Device&);
std::unique_ptr<Launcher> make_launcher(const Shape&, Device&);

/// Like why_unsupported(), for CUDA devices.
std::string why_unsupported_on_cuda(const Shape&);
std::unique_ptr<Launcher> make_cuda_launcher(const Shape&);

}  // namespace feedrate::launch
