#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "variants/tensors/memory.hpp"

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

inline constexpr std::uint64_t kSlotsInPart = 4096;
inline constexpr std::size_t kPartBytes = kSlotsInPart * sizeof(TensorWords);

/// The daemon's own: parts of `kSlotsInPart` slots, which tensors take and give back. It writes there and trusts
/// nothing of what it reads.
class Board {
 public:
  Board() : memory_(memfd_memory()) {}

  /// A slot with all words zero but `generation`.
  std::uint64_t take(std::uint64_t generation);
  /// From now on those who hold a lease know that the name is gone.
  void mark_deleted(std::uint64_t slot) { words(slot).generation.store(0, std::memory_order_release); }
  void give_back(std::uint64_t slot) { free_.push_back(slot); }
  TensorWords& words(std::uint64_t slot);
  const Chunk& part(std::uint64_t number) const { return *parts_.at(number).memory; }

 private:
  struct Part {
    std::unique_ptr<Chunk> memory;
    std::unique_ptr<Mapping> mapping;
  };
  std::unique_ptr<ChunkMemory> memory_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> free_;
};

}  // namespace feedrate::tensors
