#pragma once
#include <atomic>
#include <cstdint>

namespace feedrate::tensors {

/// What every process knows of a tensor without asking: a line of memory that all of them map.
///
/// Versions order writers and readers. A writer sets `begun` to the next version, writes, and then sets `done` to it:
/// by the host, or by the stream that wrote (cuStreamWriteValue64). Version 0 is the zeros that a tensor begins with.
struct alignas(64) TensorWords {
  std::atomic<std::uint64_t> generation;  ///< whose these are; 0: deleted, those who hold a lease may go on
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> done;
  std::atomic<std::uint32_t> sealed;   ///< nobody shall write any more
  std::atomic<std::uint32_t> wake;     ///< a futex: changes with `done` where the host writes it
  std::atomic<std::uint32_t> waiters;  ///< threads that sleep on it
};
static_assert(sizeof(TensorWords) == 64 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace feedrate::tensors
