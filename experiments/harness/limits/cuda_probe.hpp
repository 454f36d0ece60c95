#pragma once
#include <memory>

#include "common/device/cuda_check.hpp"
#include "common/limits/device_limit.hpp"
#include "common/limits/limit_list.hpp"

/// Helpers for measuring a GPU's limits.
namespace feedrate {

class OneStream {
 public:
  OneStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~OneStream() { cudaStreamDestroy(stream_); }
  OneStream(const OneStream&) = delete;
  OneStream& operator=(const OneStream&) = delete;
  /// Waits for all queued work. Throws Failure if a launch or the work itself failed.
  void wait() const {
    check(cudaGetLastError(), "kernel launch");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

inline void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
}

/// Runs of the work that `queue(stream)` queues, per second.
template <class Queue>
double runs_per_second(const Queue& queue) {
  const OneStream stream;
  return per_second(kReadingSeconds, [&] {
    queue(static_cast<cudaStream_t>(stream));
    stream.wait();
  });
}

/// Median time in ns of the work that `queue(stream)` queues, until the host knows that it has ended.
template <class Queue>
double median_run_ns(const Queue& queue) {
  constexpr unsigned kTimings = 200;
  const OneStream stream;
  return median_ns(kTimings, [&] {
    queue(static_cast<cudaStream_t>(stream));
    stream.wait();
  });
}

/// Runs of a kernel per second. `launch(stream, sums)` queues it; each of its threads writes its sum to `sums`. Throws
/// Failure if a sum is not `expected`.
template <class Launch>
double checked_runs_per_second(unsigned threads, double expected, const Launch& launch) {
  double* sums = nullptr;
  check(cudaMallocManaged(&sums, sizeof *sums * threads), "cudaMallocManaged");
  const auto free = [](double* memory) { cudaFree(memory); };
  const std::unique_ptr<double, decltype(free)> kept(sums, free);
  const double rate = runs_per_second([&](cudaStream_t stream) { launch(stream, sums); });
  for (unsigned i = 0; i < threads; ++i) {
    if (sums[i] != expected) throw Failure("the kernel computed wrong sums");
  }
  return rate;
}

#ifdef __CUDACC__
/// Reads pieces of 16 bytes, changes each piece and writes it.
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

/// Operand types of tensor cores. Floats are accumulated in single precision, integers in 32 bits, doubles in double
/// precision.
enum class TensorType { f8, f16, bf16, tf32, f64, i8 };

/// Operations per second of the current GPU's tensor cores with warpgroup instructions, which GPUs of compute
/// capability 9.0 need to reach their peak rate. A multiply-add is two operations. Throws Failure if the sums are
/// wrong. Defined for all types except f64, which these instructions do not multiply.
template <TensorType type>
double wgmma_operations_per_second(unsigned processors);

/// Bytes per second, each way, of a kernel that reads pinned memory and writes it back.
double sm_echo_bytes_per_second(LimitProbe&);

}  // namespace feedrate
