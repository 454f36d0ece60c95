#pragma once
#include <utility>

#include "common/device/device.hpp"
#include "common/error.hpp"
#include "kernels/serving/group.hpp"
#ifdef __CUDACC__
#include "kernels/serving/batch.cuh"
#include "kernels/serving/resident.cuh"
#endif

/// Makes a Kernel in all its forms (CPU, launched, resident) from one functor F. HD: for host and device (FEEDRATE_HD).
///
///     static bool accepts(bytes);                 HD: whether a message of this length can be worked on
///     static size_t result_bytes(bytes);          HD: payload bytes of its result
///     uint32_t operator()(group, in, bytes, out)  HD: writes the result, returns this thread's share of its checksum
///   and, if wanted,
///     bool refuses(payload, bytes)                HD: whether this very message can't be worked on; it alone fails.
///                                                 Every thread of the group asks, and must get the same answer
///     Fault fault(header, payload, bytes)         HD: the same, and why. Fault::again asks a queue that can retry to
///                                                 deliver the message again later
///
/// The functor is copied to the GPU by value. `group` is the threads that share the message
/// (kernels/serving/group.hpp). `in` and `out` are pieces of 16 bytes; reading and writing up to the next multiple of
/// 16 behind `bytes` is allowed. A result's checksum is for whoever wants one; the ring does not look at it.
namespace feedrate {

/// One message by one group: the functor, and the header that every result carries.
template <class F, class Group, class Marks>
FEEDRATE_HD void serve_message(const F& functor, const Group& group, const std::byte* in, std::size_t in_stride,
                               std::byte* out, std::size_t out_stride, const Marks& marks) {
  Header header = *reinterpret_cast<const Header*>(in);
  const bool marked = group.rank() == 0 && marks.samples(header.id);
  if (marked) marks.begin(header.id);
  const std::size_t length = header.length;
  Fault fault = Fault::none;
  if (length > in_stride - sizeof(Header)) {
    fault = Fault::too_long;
  } else if (!F::accepts(length)) {
    fault = Fault::bad_length;
  } else if (F::result_bytes(length) > out_stride - sizeof(Header)) {
    fault = Fault::too_long;
  } else if constexpr (requires { functor.fault(header, in, length); }) {
    fault = functor.fault(header, in + sizeof(Header), length);
  } else if constexpr (requires { functor.refuses(in, length); }) {
    if (functor.refuses(in + sizeof(Header), length)) fault = Fault::refused;
  }
  if (fault == Fault::none) {
    const auto* payload = reinterpret_cast<const Vec16*>(in + sizeof(Header));
    header.checksum = group.sum(functor(group, payload, length, reinterpret_cast<Vec16*>(out + sizeof(Header))));
    header.length = static_cast<std::uint32_t>(F::result_bytes(length));
  } else {
    header.checksum = 0;
    header.length = kFailed | static_cast<std::uint32_t>(fault);
  }
  if (group.rank() == 0) *reinterpret_cast<Header*>(out) = header;
  if (marked) marks.end(header.id);
}

/// `Base` is Kernel, or an interface that adds to it.
template <class F, class Base = Kernel>
class KernelOf : public Base {
 public:
  explicit KernelOf(F functor = F()) : functor_(std::move(functor)) {}

  void run_on_cpu(const BatchView& batch) const override {
    const typename Base::KernelMarks marks(batch.marks);
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      serve_message(functor_, OneThread{}, batch.in + std::size_t{i} * batch.in_stride, batch.in_stride,
                    batch.out + std::size_t{i} * batch.out_stride, batch.out_stride, marks);
    }
  }
#ifdef __CUDACC__
  void launch_on_cuda(const BatchView& batch, unsigned block, void* stream) const override {
    launch_batch<F, typename Base::KernelMarks>(functor_, batch, block, static_cast<cudaStream_t>(stream));
  }
  void launch_resident_on_cuda(std::span<const LaneView> lanes, const ResidentShape& shape,
                               void* stream) const override {
    launch_resident<F, typename Base::KernelMarks>(functor_, lanes, shape, static_cast<cudaStream_t>(stream));
  }
  unsigned resident_blocks_that_fit(const ResidentShape& shape) const override {
    return resident_blocks<F, typename Base::KernelMarks>(shape);
  }
#else
  void launch_on_cuda(const BatchView&, unsigned, void*) const override { throw Failure("built without CUDA"); }
  void launch_resident_on_cuda(std::span<const LaneView>, const ResidentShape&, void*) const override {
    throw Failure("built without CUDA");
  }
  unsigned resident_blocks_that_fit(const ResidentShape&) const override { return 0; }
#endif

 protected:
  F functor_;
};

}  // namespace feedrate
