#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "libraries/tensors/memory.hpp"
#include "libraries/tensors/words.hpp"

namespace feedrate::tensors {

inline constexpr std::uint64_t kSlotsInPart = 4096;
inline constexpr std::size_t kPartBytes = kSlotsInPart * sizeof(TensorWords);

/// The daemon's storage for the words of tensors, in parts of `kSlotsInPart` slots. The daemon writes to it and trusts
/// nothing that it reads there.
class Board {
 public:
  Board() : memory_(memfd_memory()) {}

  /// Allocates a slot, with all words zero except `generation`.
  std::uint64_t take(std::uint64_t generation);
  /// Tells the holders of leases that the name is gone.
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
