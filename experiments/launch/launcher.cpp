#include "experiments/launch/launcher.hpp"

#include <atomic>
#include <vector>

#include "common/error.hpp"
#include "features.hpp"

namespace feedrate::launch {
namespace {

/// On the CPU device a launch hands a function to the stream's thread.
class NullKernel final : public LaunchedKernel {
 public:
  explicit NullKernel(bool counted) : counted_(counted) {}
  void run_on_cpu(const BatchView&) const override {
    if (counted_) count_.fetch_add(1, std::memory_order_relaxed);
  }
  void with_cuda_launch(const BatchView&, unsigned, const UseCudaLaunch&) const override {}
  std::uint64_t count() const { return count_.load(); }

 private:
  bool counted_;
  mutable std::atomic<std::uint64_t> count_{0};
};

class CpuLauncher final : public Launcher {
 public:
  CpuLauncher(const Shape& shape, Device& device) : shape_(shape), kernel_(shape.counted) {
    for (unsigned i = 0; i < shape.streams; ++i) streams_.push_back(device.stream());
  }
  void launch() override {
    Stream& stream = *streams_[next_++ % streams_.size()];
    for (unsigned i = 0; i < shape_.kernels; ++i) stream.launch(kernel_, {}, shape_.block);
  }
  void wait() override {
    for (const auto& stream : streams_) stream->synchronize();
  }
  std::uint64_t counted() override { return kernel_.count(); }

 private:
  Shape shape_;
  NullKernel kernel_;
  std::vector<std::unique_ptr<Stream>> streams_;  // destroyed first: they use the kernel
  std::size_t next_ = 0;
};

}  // namespace

std::string refuse(const Shape& shape, Device& device) {
  if (device.kind() == "cuda") return refuse_on_cuda(shape);
  return shape.form == "plain" ? "" : "form " + shape.form + " needs a GPU";
}

std::unique_ptr<Launcher> make_launcher(const Shape& shape, Device& device) {
  if (device.kind() == "cuda") return make_cuda_launcher(shape);
  return std::make_unique<CpuLauncher>(shape, device);
}

#ifndef FEEDRATE_WITH_CUDA
std::string refuse_on_cuda(const Shape&) { return "built without CUDA"; }
std::unique_ptr<Launcher> make_cuda_launcher(const Shape&) { throw Failure("built without CUDA"); }
#endif

}  // namespace feedrate::launch
