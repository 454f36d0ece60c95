#include "libraries/storage/uring_engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "common/threads/threads.hpp"

namespace feedrate::storage {
namespace {

unsigned flags_of(const std::string& wait) {
  if (wait == "sqpoll") return IORING_SETUP_SQPOLL;
  return IORING_SETUP_SINGLE_ISSUER | (wait == "iopoll" ? IORING_SETUP_IOPOLL : IORING_SETUP_DEFER_TASKRUN);
}

/// Limits the kernel's workers for files and drives. It would start four per core, which would only wait for cores.
void limit_workers(Uring& ring) {
  unsigned workers[2] = {std::max(available_cores(), 3u) - 2, 0};  // others: unchanged
  Uring::check(::io_uring_register_iowq_max_workers(ring.get(), workers), "io_uring: limiting the workers");
}

}  // namespace

UringEngine::UringEngine(const EngineConfig& config, const UringOptions& options)
    : operation_(config.operation),
      options_(options),
      punts_(punts(options_.punt, config.direct, config.block)),
      files_(config),
      staging_(config.device, config.depth, config.block),
      slots_(config.depth),
      copies_(config.device, options_.streams, direction_of(config.operation), {.scatters = config.scatters}),
      ring_(static_cast<unsigned>(config.depth), flags_of(options_.wait)) {
  limit_workers(ring_);
  register_files();
  std::vector<iovec> buffers(config.depth);
  for (std::size_t i = 0; i < config.depth; ++i) buffers[i] = {staging_.slot(i), staging_.stride()};
  Uring::check(::io_uring_register_buffers(ring_.get(), buffers.data(), static_cast<unsigned>(buffers.size())),
               "io_uring: registering the staging memory");
}

UringEngine::~UringEngine() {
  try {
    flush();
    ring_.await_all(queued_);        // the kernel may still write into the staging memory
  } catch (const std::exception&) {  // the ring itself failed; closing it cancels its requests
  }
}

bool UringEngine::submit(const Request& request) {
  if (slots_.full()) return false;
  const std::size_t slot = slots_.take(request);
  if (operation_ == Operation::read) {
    queue(slot);
  } else {
    copies_.add(request, staging_.slot(slot), request.bytes, slot);
  }
  return true;
}

void UringEngine::flush() {
  if (unsent_ == 0) return;
  const int sent = ::io_uring_submit(ring_.get());
  if (sent < 0 && sent != -EINTR && sent != -EAGAIN && sent != -EBUSY) throw Uring::failure("io_uring_submit", sent);
  if (sent > 0) unsent_ -= static_cast<unsigned>(sent);
}

std::size_t UringEngine::poll(std::span<Completion> ended) {
  flush();
  if (queued_ != 0) collect();
  copies_.poll([&](std::size_t slot) {
    if (operation_ == Operation::read) {
      slots_.end(slot);
    } else {
      queue(slot);
    }
  });
  flush();
  return slots_.poll(ended);
}

bool UringEngine::reopen() {
  Uring::check(::io_uring_unregister_files(ring_.get()), "io_uring: releasing the files");
  files_.reopen();
  register_files();
  return true;
}

std::map<std::string, std::string> UringEngine::path() const {
  return {{"mode", "pinned memory"}, {"uring", options_.wait}, {"punt", punts_ ? "yes" : "no"}};
}

void UringEngine::register_files() {
  const std::vector<int> all = files_.all();
  Uring::check(::io_uring_register_files(ring_.get(), all.data(), static_cast<unsigned>(all.size())),
               "io_uring: registering the files");
}

/// Queues the rest of a slot's request.
void UringEngine::queue(std::size_t slot) {
  const Request& request = slots_.at(slot);
  const std::size_t done = slots_.bytes(slot);
  const auto bytes = static_cast<unsigned>(request.bytes - done);
  io_uring_sqe* entry = ::io_uring_get_sqe(ring_.get());
  while (entry == nullptr) {  // the kernel has not taken earlier entries yet
    flush();
    entry = ::io_uring_get_sqe(ring_.get());
  }
  const auto file = static_cast<int>(files_.index(request.file, request.offset + done, bytes));
  std::byte* const host = staging_.slot(slot) + done;
  if (operation_ == Operation::read) {
    ::io_uring_prep_read_fixed(entry, file, host, bytes, request.offset + done, static_cast<int>(slot));
  } else {
    ::io_uring_prep_write_fixed(entry, file, host, bytes, request.offset + done, static_cast<int>(slot));
  }
  ::io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE | (punts_ ? IOSQE_ASYNC : 0));
  ::io_uring_sqe_set_data64(entry, slot);
  ++unsent_;
  ++queued_;
}

/// Handles the kernel's completions.
void UringEngine::collect() {
  if (const int error = ::io_uring_get_events(ring_.get()); error < 0 && error != -EINTR && error != -EAGAIN) {
    throw Uring::failure("io_uring_get_events", error);
  }
  std::array<io_uring_cqe*, 64> entries{};
  while (const unsigned count = ::io_uring_peek_batch_cqe(ring_.get(), entries.data(), entries.size())) {
    for (unsigned i = 0; i < count; ++i) handle(::io_uring_cqe_get_data64(entries[i]), entries[i]->res);
    ::io_uring_cq_advance(ring_.get(), count);
    queued_ -= count;
  }
}

void UringEngine::handle(std::size_t slot, int result) {
  const Request& request = slots_.at(slot);
  if (result == -EINTR || result == -EAGAIN) return queue(slot);
  if (result < 0) return slots_.end(slot, -result);
  std::size_t& done = slots_.bytes(slot);
  done += static_cast<std::size_t>(result);
  if (result != 0 && done < request.bytes) return queue(slot);
  if (operation_ == Operation::write || done == 0) return slots_.end(slot);
  copies_.add(request, staging_.slot(slot), done, slot);
}

}  // namespace feedrate::storage
