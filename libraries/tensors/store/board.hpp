#pragma once
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "common/error.hpp"
#include "libraries/tensors/memory.hpp"
#include "libraries/tensors/tensor.hpp"

namespace feedrate::tensors {

inline constexpr std::uint64_t kSlotsInPart = 4096;
inline constexpr std::size_t kPartBytes = kSlotsInPart * sizeof(TensorWords);

/// The daemon's storage for the words of tensors, in parts of `kSlotsInPart` slots. The daemon writes to it and trusts
/// nothing that it reads there.
class Board {
 public:
  Board() : memory_(memfd_memory()) {}

  /// Allocates a slot, with all words zero except `generation`.
  std::uint64_t take(std::uint64_t generation) {
    if (free_.empty()) add_part();
    const std::uint64_t slot = free_.back();
    free_.pop_back();
    TensorWords& own = *new (&words(slot)) TensorWords{};
    own.generation.store(generation, std::memory_order_release);
    return slot;
  }
  /// Informs the holders of leases that the name is gone.
  void mark_deleted(std::uint64_t slot) { words(slot).generation.store(0, std::memory_order_release); }
  void give_back(std::uint64_t slot) { free_.push_back(slot); }
  TensorWords& words(std::uint64_t slot) {
    return static_cast<TensorWords*>(parts_.at(slot / kSlotsInPart).mapping->data())[slot % kSlotsInPart];
  }
  const Chunk& part(std::uint64_t number) const { return *parts_.at(number).memory; }

 private:
  struct Part {
    std::unique_ptr<Chunk> memory;
    std::unique_ptr<Mapping> mapping;
  };
  void add_part() {
    auto memory = memory_->make(kPartBytes);
    Descriptor own(fcntl(memory->handle().descriptor, F_DUPFD_CLOEXEC, 0));
    if (!own) throw Failure(fmt::format("F_DUPFD: {}", std::strerror(errno)));
    auto mapping = memory_->map(std::move(own), "", kPartBytes);
    const std::uint64_t first = parts_.size() * kSlotsInPart;
    parts_.push_back({std::move(memory), std::move(mapping)});
    for (std::uint64_t slot = first + kSlotsInPart; slot-- > first;) free_.push_back(slot);
  }
  std::unique_ptr<ChunkMemory> memory_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> free_;
};

}  // namespace feedrate::tensors
