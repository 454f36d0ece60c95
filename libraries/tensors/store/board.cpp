#include "libraries/tensors/store/board.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "common/error.hpp"

namespace feedrate::tensors {

std::uint64_t Board::take(std::uint64_t generation) {
  if (free_.empty()) {
    auto memory = memory_->make(kPartBytes);
    Descriptor own(fcntl(memory->handle().descriptor, F_DUPFD_CLOEXEC, 0));
    if (!own) throw Failure(fmt::format("F_DUPFD: {}", std::strerror(errno)));
    auto mapping = memory_->map(std::move(own), "", kPartBytes);
    const std::uint64_t first = parts_.size() * kSlotsInPart;
    parts_.push_back({std::move(memory), std::move(mapping)});
    for (std::uint64_t slot = first + kSlotsInPart; slot-- > first;) free_.push_back(slot);
  }
  const std::uint64_t slot = free_.back();
  free_.pop_back();
  TensorWords& words = *new (&this->words(slot)) TensorWords{};
  words.generation.store(generation, std::memory_order_release);
  return slot;
}

TensorWords& Board::words(std::uint64_t slot) {
  return static_cast<TensorWords*>(parts_.at(slot / kSlotsInPart).mapping->data())[slot % kSlotsInPart];
}

}  // namespace feedrate::tensors
