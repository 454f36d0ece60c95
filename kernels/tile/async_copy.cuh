#pragma once
#include <cstdint>

/// Copies from memory to shared memory that need no registers and run while the thread computes (PTX ISA, "cp.async").
namespace feedrate::tile {

__device__ inline std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

/// Copies 16 bytes, both sides aligned to 16. Bytes beyond the first `there` (0 to 16) become 0 and are not read.
__device__ inline void copy_16(void* to, const void* from, int there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(there)
               : "memory");
}
/// The same for 4 bytes; `there` is 0 or 4.
__device__ inline void copy_4(void* to, const void* from, int there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(there)
               : "memory");
}
/// Ends a group of this thread's copies.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits until at most `groups` of this thread's groups run.
template <int groups>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(groups) : "memory");
}

}  // namespace feedrate::tile
