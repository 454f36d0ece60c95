#pragma once
#include <initializer_list>

#include "common/device/cuda_check.hpp"
#include "common/device/device.hpp"

/// What the CUDA floors' probes share.
namespace feedrate {

class OneStream {
 public:
  OneStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~OneStream() { cudaStreamDestroy(stream_); }
  OneStream(const OneStream&) = delete;
  OneStream& operator=(const OneStream&) = delete;
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

inline void launched() { check(cudaGetLastError(), "kernel launch"); }
inline void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
}

/// One word to a kernel that looks at it, and back: the median, in ns.
double word_floor_ns(Device&);
/// `bytes` to a kernel that polls for them, and back with each word plus one: the median, in ns, of the best of the
/// numbers of `pollers`. More look at the line more often, against the copies that the host must write.
double lone_message_floor_ns(Device&, unsigned bytes, std::initializer_list<unsigned> pollers);
/// The `share` percentile, in ns, of what a queue with cursors does on the GPU for a batch, while all blocks together
/// move half of `bytes_per_second` from `in` to `out`, buffers of 64 MiB in pinned memory.
double round_floor_ns(Device&, const Buffer& in, const Buffer& out, double bytes_per_second, double share);

}  // namespace feedrate
