#pragma once
#include <cstdint>

/// One atomic view of a 64-bit word for host and GPU code: system scope, since both sides of the bus touch it.
/// `cuda::atomic_ref` where nvcc compiles, `std::atomic_ref` elsewhere (GPU-less builds, ThreadSanitizer); both act on
/// the plain word with the same orders, so code compiled by either may share memory.
#ifdef __CUDACC__
#include <cuda/atomic>
namespace feedrate {
using SystemWord = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
inline constexpr auto kRelaxed = cuda::memory_order_relaxed;
inline constexpr auto kAcquire = cuda::memory_order_acquire;
inline constexpr auto kRelease = cuda::memory_order_release;
}  // namespace feedrate
#else
#include <atomic>
namespace feedrate {
using SystemWord = std::atomic_ref<std::uint64_t>;
inline constexpr auto kRelaxed = std::memory_order_relaxed;
inline constexpr auto kAcquire = std::memory_order_acquire;
inline constexpr auto kRelease = std::memory_order_release;
}  // namespace feedrate
#endif
