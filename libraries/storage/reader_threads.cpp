#include "libraries/storage/reader_threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "common/error.hpp"

namespace feedrate::storage {

ReaderThreads::ReaderThreads(const EngineConfig& config, const ReaderThreadsOptions& options)
    : operation_(config.operation),
      files_(config),
      slots_(std::min(config.depth, std::size_t{options.readers} * options.slots)),
      staging_(config.device, slots_.count(), config.block),
      copies_(config.device, options.streams, direction_of(config.operation), {.scatters = config.scatters}) {
  const auto readers = std::min<std::size_t>(options.readers, config.depth);
  try {
    for (std::size_t i = 0; i < readers; ++i) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error& failure) {
    board_.stop();
    throw Failure(fmt::format("cannot start reader {} of {}: {}", threads_.size() + 1, readers, failure.what()));
  }
}

bool ReaderThreads::submit(const Request& request) {
  if (slots_.full()) return false;
  const std::size_t slot = slots_.take(request);
  if (operation_ == Operation::read) {
    board_.add({request, slot});
  } else {
    copies_.add(request, staging_.slot(slot), request.bytes, slot);
  }
  return true;
}

std::size_t ReaderThreads::poll(std::span<Completion> ended) {
  board_.collect(moved_);
  for (const Moved& moved : moved_) {
    slots_.bytes(moved.slot) = moved.bytes;
    if (operation_ == Operation::write || moved.error != 0 || moved.bytes == 0) {
      slots_.end(moved.slot, moved.error);
    } else {
      copies_.add(slots_.at(moved.slot), staging_.slot(moved.slot), moved.bytes, moved.slot);
    }
  }
  moved_.clear();
  copies_.poll([&](std::size_t slot) {
    if (operation_ == Operation::read) {
      slots_.end(slot);
    } else {
      board_.add({slots_.at(slot), slot});
    }
  });
  return slots_.poll(ended);
}

bool ReaderThreads::reopen() {
  files_.reopen();  // the readers use them only for tasks that they take from the board
  return true;
}

std::map<std::string, std::string> ReaderThreads::path() const {
  return {{"mode", "pinned memory"}, {"readers", std::to_string(threads_.size())}};
}

void ReaderThreads::serve() {
  for (Task task; board_.take(task);) {
    const Request& request = task.request;
    const int descriptor = files_.descriptor(request.file, request.offset, request.bytes);
    const Completion moved = move_block(operation_, descriptor, staging_.slot(task.slot), request);
    board_.end({task.slot, moved.error, moved.bytes});
  }
}

}  // namespace feedrate::storage
