#include "experiments/launch/launcher.hpp"

#include <atomic>
#include <vector>

#include "common/error.hpp"
#include "features.hpp"

namespace feedrate::launch {
namespace {

/// Empty kernel for the CPU device, where a launch hands a function to the stream's thread.
class NullLaunch final : public Launchable {
 public:
  explicit NullLaunch(std::atomic<std::uint64_t>* counter) : counter_(counter) {}
  void with_cuda_launch(const UseCudaLaunch&) const override {}
  std::function<void()> on_cpu() const override {
    return [counter = counter_] {
      if (counter != nullptr) counter->fetch_add(1, std::memory_order_relaxed);
    };
  }

 private:
  std::atomic<std::uint64_t>* counter_;
};

class CpuLauncher final : public Launcher {
 public:
  CpuLauncher(const Shape& shape, Device& device) : shape_(shape), launch_(shape.counted ? &count_ : nullptr) {
    for (unsigned i = 0; i < shape.streams; ++i) streams_.push_back(device.stream());
  }
  void launch() override {
    Stream& stream = *streams_[next_++ % streams_.size()];
    for (unsigned i = 0; i < shape_.kernels; ++i) stream.launch(launch_);
  }
  void wait() override {
    for (const auto& stream : streams_) stream->synchronize();
  }
  std::uint64_t counted() override { return count_.load(); }

 private:
  Shape shape_;
  std::atomic<std::uint64_t> count_{0};
  NullLaunch launch_;
  std::vector<std::unique_ptr<Stream>> streams_;  // destroyed first: the streams use the counter
  std::size_t next_ = 0;
};

}  // namespace

std::string why_unsupported(const Shape& shape, Device& device) {
  if (device.kind() == "cuda") return why_unsupported_on_cuda(shape);
  return shape.form == "plain" ? "" : "form " + shape.form + " needs a GPU";
}

std::unique_ptr<Launcher> make_launcher(const Shape& shape, Device& device) {
  if (device.kind() == "cuda") return make_cuda_launcher(shape);
  return std::make_unique<CpuLauncher>(shape, device);
}

#ifndef FEEDRATE_WITH_CUDA
std::string why_unsupported_on_cuda(const Shape&) { return "built without CUDA"; }
std::unique_ptr<Launcher> make_cuda_launcher(const Shape&) { throw Failure("built without CUDA"); }
#endif

}  // namespace feedrate::launch
