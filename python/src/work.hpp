#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <feedrate/kernel.hpp>
#include <feedrate/ring.hpp>

namespace feedrate::python {

/// A result is its message. `by_address`: messages are Addresses (feedrate/kernel.hpp), and what lies there is copied.
std::unique_ptr<Kernel> make_echo(bool by_address);

/// A functor that was compiled at run time.
struct CompiledWork {
  std::string image;               ///< a cubin for the GPU at hand
  std::vector<std::string> names;  ///< of its kernels: batch_kernel, then each form of resident_kernel, by teams that
                                   ///< are not warps and that are
  std::vector<std::uint64_t> members;  ///< what the functor is made from, eight bytes each
};
std::unique_ptr<Kernel> make_compiled(const CompiledWork&);
inline constexpr std::size_t kCompiledNames = 9;

/// Orders tensors behind the work that their owner has queued.
class Order {
 public:
  explicit Order(bool gpu);
  ~Order();
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  /// The stream that DLPack is asked to order a tensor for; 0 on the CPU.
  std::uintptr_t stream() const { return reinterpret_cast<std::uintptr_t>(stream_); }
  /// Until all that was ordered is done.
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
/// Every GPU that this process may use; none where there is no driver, or no CUDA in this build.
std::vector<GpuInfo> gpus();

}  // namespace feedrate::python
