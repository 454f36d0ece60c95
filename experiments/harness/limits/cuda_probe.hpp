#pragma once
#include "common/device/cuda_check.hpp"
#include "common/limits/device_limit.hpp"
#include "common/limits/limit_list.hpp"

/// What the measurements of a GPU's limits share.
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

#ifdef __CUDACC__
/// Reads pieces of 16 bytes, changes each and writes it.
static __global__ void echo_kernel(const uint4* in, uint4* out, std::size_t n) {
#pragma unroll 4
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) {
    uint4 v = in[i];
    ++v.x;
    out[i] = v;
  }
}
#endif

inline const uint4* pieces(const Buffer& buffer) { return reinterpret_cast<const uint4*>(buffer.data()); }
inline uint4* mutable_pieces(const Buffer& buffer) { return reinterpret_cast<uint4*>(buffer.data()); }

/// Bytes per second that a kernel reads from pinned memory and writes back, each way.
double sm_echo_bytes_per_second(LimitProbe&);

}  // namespace feedrate
