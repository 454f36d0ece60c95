#include "kernels/storage/rings_kernel.hpp"

#include <thread>
#include <vector>

#include "common/error.hpp"
#include "kernels/storage/ring_accesses.cuh"

namespace feedrate::storage::rings {
namespace {

#ifdef __CUDACC__
constexpr unsigned kRingThreads = 128;  // per block

__global__ void __launch_bounds__(kRingThreads)
    list_kernel(View view, ListedBlock* blocks, std::uint32_t count, bool reads) {
  move_list(WarpLanes(), view, blockIdx.x * blockDim.x + threadIdx.x, blocks, count, reads);
}

__global__ void __launch_bounds__(kRingThreads) access_kernel(View view, Accesses accesses) {
  Accessor<WarpLanes>(WarpLanes(), view, accesses, blockIdx.x * blockDim.x + threadIdx.x).run();
}
#endif

/// Calls `body(thread)` on one CPU thread per device thread.
template <class Body>
void on_threads(std::uint32_t count, const Body& body) {
  std::vector<std::jthread> threads;
  for (std::uint32_t t = 0; t < count; ++t) threads.emplace_back(body, t);
}

}  // namespace

void ListLaunch::with_cuda_launch(const UseCudaLaunch& use) const {
#ifdef __CUDACC__
  View view = view_;
  ListedBlock* blocks = blocks_;
  std::uint32_t count = count_;
  bool reads = reads_;
  void* arguments[] = {&view, &blocks, &count, &reads};
  use({reinterpret_cast<const void*>(list_kernel), view.threads / kRingThreads, kRingThreads, 0, arguments});
#else
  static_cast<void>(use);
  throw Failure("built without CUDA");
#endif
}

std::function<void()> ListLaunch::on_cpu() const {
  return [view = view_, blocks = blocks_, count = count_, reads = reads_] {
    on_threads(view.threads, [&](std::uint32_t t) { move_list(OneLane(), view, t, blocks, count, reads); });
  };
}

void AccessLaunch::with_cuda_launch(const UseCudaLaunch& use) const {
#ifdef __CUDACC__
  View view = view_;
  Accesses accesses = accesses_;
  void* arguments[] = {&view, &accesses};
  use({reinterpret_cast<const void*>(access_kernel), view.threads / kRingThreads, kRingThreads, 0, arguments});
#else
  static_cast<void>(use);
  throw Failure("built without CUDA");
#endif
}

std::function<void()> AccessLaunch::on_cpu() const {
  return [view = view_, accesses = accesses_] {
    on_threads(view.threads, [&](std::uint32_t t) { Accessor<OneLane>(OneLane(), view, accesses, t).run(); });
  };
}

}  // namespace feedrate::storage::rings
