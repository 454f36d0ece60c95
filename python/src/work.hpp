#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <feedrate/kernel.hpp>
#include <feedrate/ring.hpp>

namespace feedrate::python {

/// Creates work whose results equal the messages. With `by_address`, the messages are Addresses (feedrate/kernel.hpp),
/// and the work copies the data at these addresses.
std::unique_ptr<Kernel> make_echo(bool by_address);

/// A functor that was compiled at run time.
struct CompiledWork {
  std::string image;               ///< a cubin for the ring's GPU
  std::vector<std::string> names;  ///< names of its kernels: batch_kernel, then all forms of resident_kernel for teams
                                   ///< that are not warps, then all forms for teams that are warps
  std::vector<std::uint64_t> members;  ///< values of the functor's members, eight bytes each
};
std::unique_ptr<Kernel> make_compiled(const CompiledWork&);
inline constexpr std::size_t kCompiledNames = 9;

/// Makes the ring wait for work that the owner of a tensor has queued.
class Order {
 public:
  explicit Order(bool gpu);
  ~Order();
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  /// The stream to pass to DLPack, which orders tensors before it; 0 on the CPU.
  std::uintptr_t stream() const { return reinterpret_cast<std::uintptr_t>(stream_); }
  /// Waits until all work ordered so far is done.
  void wait() const;

 private:
  void* stream_ = nullptr;
};

struct GpuInfo {
  int index = 0;
  std::string name;
  std::size_t memory_bytes = 0;
  int processors = 0;      // SMs
  std::string capability;  // "9.0"
};
/// Returns every GPU that this process may use; none without a driver, or in a build without CUDA.
std::vector<GpuInfo> gpus();

}  // namespace feedrate::python
