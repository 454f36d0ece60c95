#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <feedrate/ring.hpp>

namespace feedrate::python {

namespace nb = nanobind;
using Bytes2 = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<2>>;

/// A Python function on batches, for the CPU device: function(messages, results). Each row is a header and a payload.
class FunctionKernel final : public LaunchedKernel {
 public:
  explicit FunctionKernel(nb::object function) : function_(std::move(function)) {}
  ~FunctionKernel() override {
    const nb::gil_scoped_acquire gil;
    function_.reset();
  }
  void run_on_cpu(const BatchView& batch) const override {
    const nb::gil_scoped_acquire gil;
    const FunctionKernel* const before = std::exchange(serving_, this);
    try {
      const Bytes2 in(const_cast<std::byte*>(batch.in), {batch.count, batch.in_stride});
      const Bytes2 out(batch.out, {batch.count, batch.out_stride});
      function_(nb::cast(in, nb::rv_policy::reference), nb::cast(out, nb::rv_policy::reference));
    } catch (nb::python_error& error) {  // user errors are handled inside `function`; this is an internal error
      error.discard_as_unraisable("feedrate: serving a batch");
      for (std::uint32_t i = 0; i < batch.count; ++i) {
        const Header& message = *reinterpret_cast<const Header*>(batch.in + std::size_t{i} * batch.in_stride);
        *reinterpret_cast<Header*>(batch.out + std::size_t{i} * batch.out_stride) = {
            message.id, kFailed | static_cast<std::uint32_t>(Fault::refused), 0};
      }
    }
    serving_ = before;
  }
  void with_cuda_launch(const BatchView&, unsigned, const UseCudaLaunch&) const override {
    throw Failure("a Python function cannot run on a GPU");
  }

  /// Whether this thread is currently running the function.
  bool serves_here() const { return serving_ == this; }
  nb::handle function() const { return function_; }

 private:
  inline static thread_local const FunctionKernel* serving_ = nullptr;
  nb::object function_;
};

}  // namespace feedrate::python
