#pragma once
#include <atomic>
#include <cstdint>

namespace feedrate::tensors {

/// The state of a tensor that every process can read without a request: a cache line that all of them map.
///
/// Versions order writers and readers. A writer sets `begun` to the next version, writes, and then sets `done` to it.
/// The host sets `done`, or the stream that wrote does (cuStreamWriteValue64). Version 0 is the initial zeros.
struct alignas(64) TensorWords {
  std::atomic<std::uint64_t> generation;  ///< the tensor that these words belong to; 0: deleted, leases remain valid
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> done;
  std::atomic<std::uint32_t> sealed;   ///< whether there will be no more writes
  std::atomic<std::uint32_t> wake;     ///< a futex, which changes with `done` if the host writes it
  std::atomic<std::uint32_t> waiters;  ///< number of threads that sleep on the futex
};
static_assert(sizeof(TensorWords) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace feedrate::tensors
