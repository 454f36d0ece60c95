#pragma once
#include <utility>

#include "common/device/device.hpp"
#include "common/error.hpp"
#include "kernels/serving/serve.hpp"
#ifdef __CUDACC__
#include "kernels/serving/launching.cuh"
#include "kernels/serving/resident.cuh"
#endif

/// Makes a Kernel in all its forms (CPU, launched, resident) from one functor F. HD: for host and device (FEEDRATE_HD).
///
///     static bool accepts(bytes);                 HD: whether messages of this length are accepted
///     static size_t result_bytes(bytes);          HD: payload bytes of its result
///     uint32_t operator()(group, in, bytes, out)  HD: writes the result, returns this thread's share of its checksum
///   and, optionally,
///     bool rejects(payload, bytes)                HD: whether to reject this message; no other message fails.
///                                                 Every thread of the group calls this and must get the same answer
///     Fault fault(header, payload, bytes)         HD: like `rejects`, with a reason. Fault::again asks a queue
///                                                 that can retry to deliver the message again later
///
/// The functor is copied to the GPU by value. `group` is the group of threads that share the message
/// (kernels/serving/group.hpp). `in` and `out` consist of pieces of 16 bytes; reading and writing past `bytes`, up to
/// the next multiple of 16, is allowed. The checksum is optional; the ring ignores it.
namespace feedrate {

/// `Base` is Kernel or an interface derived from it.
template <class F, class Base = Kernel>
class KernelOf : public Base {
 public:
  explicit KernelOf(F functor = F()) : functor_(std::move(functor)) {}

  void run_on_cpu(const BatchView& batch) const override {
    const Recorder recorder(batch.recorder);
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      serve_message(functor_, OneThread{}, batch.in_at(i), batch.in_stride, batch.out_at(i), batch.out_stride,
                    recorder);
    }
  }
#ifdef __CUDACC__
  void with_cuda_launch(const BatchView& batch, unsigned block, const UseCudaLaunch& use) const override {
    const Recorder recorder(batch.recorder);
    with_batch_launch(address_of(batch_kernel<F, Recorder>), &functor_, &recorder, batch, block, use);
  }
  void launch_resident_on_cuda(std::span<const LaneView> lanes, const ResidentShape& shape,
                               void* stream) const override {
    launch_resident(resident_kernels(shape)[resident_form(lanes.front(), shape)], &functor_, lanes, shape,
                    static_cast<cudaStream_t>(stream));
  }
  unsigned resident_blocks_that_fit(const ResidentShape& shape) const override {
    return resident_blocks(resident_kernels(shape), shape);
  }
#else
  void with_cuda_launch(const BatchView&, unsigned, const UseCudaLaunch&) const override {
    throw Failure("built without CUDA");
  }
  void launch_resident_on_cuda(std::span<const LaneView>, const ResidentShape&, void*) const override {
    throw Failure("built without CUDA");
  }
  unsigned resident_blocks_that_fit(const ResidentShape&) const override { return 0; }
#endif

 private:
  using Recorder = typename Base::KernelRecorder;
#ifdef __CUDACC__
  static ResidentKernels resident_kernels(const ResidentShape& shape) {
    const auto kernels =
        []<bool by_warp, std::size_t... form>(std::bool_constant<by_warp>, std::index_sequence<form...>) {
      return ResidentKernels{address_of(resident_kernel<F, Recorder, form, by_warp>)...};
    };
    constexpr std::make_index_sequence<kResidentForms> forms;
    return teams_are_warps(shape) ? kernels(std::true_type(), forms) : kernels(std::false_type(), forms);
  }
#endif

 protected:
  F functor_;
};

}  // namespace feedrate
