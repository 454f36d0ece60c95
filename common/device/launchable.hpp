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

/// What a launch takes: a kernel's address, its grid, and pointers to its arguments, which live as long as the call
/// that hands this over.
struct CudaLaunch {
  const void* kernel;
  Extent grid, block;
  unsigned shared_bytes;  ///< dynamic shared memory; beyond 48 KiB the kernel's attribute allows it
  void** arguments;
  Extent cluster = {};  ///< one block: none
};
using UseCudaLaunch = std::function<void(const CudaLaunch&)>;

/// A kernel with all that a launch of it takes. It may end before the launch does.
class Launchable {
 public:
  virtual ~Launchable() = default;
  /// Calls `use` with what to launch, at most once: never if there is nothing to do. Throws Failure.
  virtual void with_cuda_launch(const UseCudaLaunch& use) const = 0;
  /// What a CPU device does instead, with copies of all that it needs.
  virtual std::function<void()> on_cpu() const = 0;
};

/// Lets a kernel be launched with this much dynamic shared memory, beyond 48 KiB. Throws Failure.
void allow_shared_memory(const void* kernel, unsigned bytes);

/// What a compiled kernel takes of a GPU.
struct KernelResources {
  unsigned registers = 0;      ///< of a thread
  unsigned local_bytes = 0;    ///< of a thread: spilled registers, and arrays that found no register
  unsigned shared_bytes = 0;   ///< of a block, dynamic shared memory included
  unsigned blocks_per_sm = 0;  ///< that run at once
  unsigned capability = 0;     ///< for which its code was compiled: 90 for compute capability 9.0
};

}  // namespace feedrate
