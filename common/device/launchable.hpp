#pragma once
#include <functional>

namespace feedrate {

/// The size of a grid (in blocks), a block (in threads) or a cluster (in blocks).
struct Extent {
  unsigned x = 1, y = 1, z = 1;
  Extent() = default;
  Extent(unsigned x_extent, unsigned y_extent = 1, unsigned z_extent = 1)  // NOLINT(google-explicit-constructor)
      : x(x_extent), y(y_extent), z(z_extent) {}
  unsigned size() const { return x * y * z; }
};

/// Parameters of a launch: a kernel's address, its grid, and pointers to its arguments, which are valid only during the
/// call that passes this struct.
struct CudaLaunch {
  const void* kernel;
  Extent grid, block;
  unsigned shared_bytes;  ///< dynamic shared memory; above 48 KiB it needs allow_shared_memory()
  void** arguments;
  Extent cluster = {};  ///< one block: no clusters
};
using UseCudaLaunch = std::function<void(const CudaLaunch&)>;

/// A kernel with everything needed to launch it. The object may be destroyed before the launch has ended.
class Launchable {
 public:
  virtual ~Launchable() = default;
  /// Calls `use` with the launch once, or not at all if there is nothing to do. Throws Failure.
  virtual void with_cuda_launch(const UseCudaLaunch& use) const = 0;
  /// Returns the equivalent function for a CPU device, with copies of everything that it needs.
  virtual std::function<void()> on_cpu() const = 0;
};

/// Allows launches of a kernel with this much dynamic shared memory, even above 48 KiB. Throws Failure.
void allow_shared_memory(const void* kernel, unsigned bytes);

/// Resources that a compiled kernel uses on a GPU.
struct KernelResources {
  unsigned registers = 0;      ///< per thread
  unsigned local_bytes = 0;    ///< per thread: spilled registers and arrays that are not in registers
  unsigned shared_bytes = 0;   ///< per block, including dynamic shared memory
  unsigned blocks_per_sm = 0;  ///< blocks that run concurrently
  unsigned capability = 0;     ///< target of the compiled code: 90 for compute capability 9.0
};

}  // namespace feedrate
