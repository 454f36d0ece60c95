#include "variants/storage/ring_controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>
#include <limits>
#include <utility>

#include "common/clock.hpp"
#include "common/threads/threads.hpp"

namespace feedrate::storage {
namespace {

constexpr std::uint64_t kFaultInterval = 64;    // commands
constexpr std::uint64_t kDelayNs = 20'000'000;  // of a delayed command
constexpr std::uint64_t kOvertaking = 8;        // commands that end before a reordered one
constexpr std::size_t kMostBytes = 65536;       // of one command

constexpr nvme::Status kOk{0}, kInvalidField{0x002};
nvme::Status status_of(int error) { return {static_cast<std::uint16_t>(rings::kErrnoStatus | (error & 0xFF))}; }

}  // namespace

RingController::RingController(const Config& config) : config_(config), active_(config.depth) {
  for (const rings::Queue& queue : config.queues) lanes_.push_back({queue});
  for (std::size_t i = config.depth; i-- > 0;) free_.push_back(i);
  std::promise<void> ready;
  thread_ = std::jthread([this, &ready](const std::stop_token& stop) {
    std::optional<Uring> ring;
    try {
      open(ring);
    } catch (...) {
      ready.set_exception(std::current_exception());
      return;
    }
    ready.set_value();
    try {
      serve(*ring, stop);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  });
  ready.get_future().get();
}

RingController::~RingController() = default;

void RingController::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void RingController::open(std::optional<Uring>& opened) const {
  Uring& ring =
      opened.emplace(static_cast<unsigned>(config_.depth), IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
  const std::vector<int> files = config_.files.all();
  Uring::check(::io_uring_register_files(ring.get(), files.data(), static_cast<unsigned>(files.size())),
               "io_uring: registering the files");
  // Buffers overlap by the largest command, so that each command lies in the buffer in which it begins.
  std::vector<iovec> buffers;
  for (std::size_t at = 0; at < config_.staging.size(); at += buffer_step()) {
    buffers.push_back({config_.staging.data() + at, std::min(config_.largest_buffer, config_.staging.size() - at)});
  }
  Uring::check(::io_uring_register_buffers(ring.get(), buffers.data(), static_cast<unsigned>(buffers.size())),
               "io_uring: registering the staging memory");
}

std::size_t RingController::buffer_step() const { return config_.largest_buffer - kMostBytes; }

void RingController::serve(Uring& ring, const std::stop_token& stop) {
  Backoff backoff;
  try {
    while (!stop.stop_requested()) {
      bool worked = take(ring);
      worked = collect(ring) || worked;
      worked = release_held() || worked;
      worked ? backoff.reset() : backoff.wait();
    }
    send(ring);
  } catch (...) {
    ring.await_all(queued_ - unsent_);  // the kernel may still write into the staging memory
    throw;
  }
  ring.await_all(queued_);
}

bool RingController::take(Uring& ring) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    lane.tail = SystemMemory::load_acquire(*lane.queue.tail_doorbell);
    if (lane.tail >= lane.queue.entries)
      throw Failure(fmt::format("doorbell value {} is outside queue {}", lane.tail, i));
  }
  // One command per queue in turn, so that no queue waits for another one (round robin arbitration; NVM Express Base
  // Specification 1.4, section 4.13.1).
  bool took = false;
  for (std::size_t idle = 0; idle < lanes_.size() && !free_.empty(); next_ = (next_ + 1) % lanes_.size()) {
    Lane& lane = lanes_[next_];
    if (lane.head == lane.tail) {
      ++idle;
      continue;
    }
    idle = 0;
    const nvme::Command command = lane.queue.submissions[lane.head];  // a copy: the device may still change it
    lane.head = (lane.head + 1) % lane.queue.entries;
    begin(ring, next_, command);
    took = true;
  }
  return took;
}

const char* RingController::why_invalid(const nvme::Command& command) const {
  const auto opcode = static_cast<nvme::IoOpcode>(command.opcode());
  if (opcode != nvme::IoOpcode::read && opcode != nvme::IoOpcode::write) return "opcode";
  if (command.namespace_id == 0 || command.namespace_id > config_.files.size()) return "namespace";
  const auto begin = reinterpret_cast<std::uint64_t>(config_.staging.data());
  const std::uint64_t bytes = (command.dwords[2] & 0xFFFF) + 1, size = config_.staging.size();
  if (command.prp1 < begin || command.prp1 - begin > size || size - (command.prp1 - begin) < bytes) return "address";
  const std::uint64_t offset = command.dwords[0] | std::uint64_t{command.dwords[1]} << 32;
  // io_uring takes the offset -1 for the file's position.
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - bytes) return "offset";
  return nullptr;
}

void RingController::begin(Uring& ring, std::size_t lane, const nvme::Command& command) {
  const bool faulty = config_.fault != RingFault::none && ++commands_ % kFaultInterval == 0;
  const Active active{lane, command, 0, faulty};
  if (faulty) injected_.fetch_add(1);
  if (why_invalid(command) != nullptr) return post(active, kInvalidField);
  if (faulty && config_.fault == RingFault::lost) return;
  if (faulty && config_.fault == RingFault::failing) return post(active, status_of(EIO));
  if (faulty && config_.fault == RingFault::early) {
    Active claims_all = active;
    claims_all.done = (command.dwords[2] & 0xFFFF) + 1;
    return post(claims_all, kOk);
  }
  const std::size_t slot = free_.back();
  free_.pop_back();
  active_[slot] = active;
  queue(ring, slot);
}

void RingController::queue(Uring& ring, std::size_t slot) {
  const Active& active = active_[slot];
  const nvme::Command& command = active.command;
  const std::uint64_t offset = (command.dwords[0] | std::uint64_t{command.dwords[1]} << 32) + active.done;
  const std::uint32_t bytes = (command.dwords[2] & 0xFFFF) + 1 - active.done;
  io_uring_sqe* entry = ::io_uring_get_sqe(ring.get());
  if (entry == nullptr) throw Failure("io_uring: the ring is full");  // it has an entry per slot
  const auto file = static_cast<int>(config_.files.index(command.namespace_id - 1, offset, bytes));
  const auto begin = reinterpret_cast<std::uint64_t>(config_.staging.data());
  std::byte* const memory = config_.staging.data() + (command.prp1 - begin) + active.done;
  const auto buffer = static_cast<int>((command.prp1 - begin) / buffer_step());
  if (static_cast<nvme::IoOpcode>(command.opcode()) == nvme::IoOpcode::read) {
    ::io_uring_prep_read_fixed(entry, file, memory, bytes, offset, buffer);
  } else {
    ::io_uring_prep_write_fixed(entry, file, memory, bytes, offset, buffer);
  }
  ::io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE | (config_.punts ? IOSQE_ASYNC : 0));
  ::io_uring_sqe_set_data64(entry, slot);
  ++unsent_;
  ++queued_;
}

void RingController::send(Uring& ring) {
  if (unsent_ == 0) return;
  const int sent = ::io_uring_submit(ring.get());
  if (sent < 0 && sent != -EINTR && sent != -EAGAIN && sent != -EBUSY) throw Uring::failure("io_uring_submit", sent);
  if (sent > 0) unsent_ -= static_cast<unsigned>(sent);
}

bool RingController::collect(Uring& ring) {
  send(ring);
  if (queued_ == 0) return false;
  if (const int error = ::io_uring_get_events(ring.get()); error < 0 && error != -EINTR && error != -EAGAIN) {
    throw Uring::failure("io_uring_get_events", error);
  }
  bool collected = false;
  std::array<io_uring_cqe*, 64> entries{};
  while (const unsigned count = ::io_uring_peek_batch_cqe(ring.get(), entries.data(), entries.size())) {
    for (unsigned i = 0; i < count; ++i) {
      const std::size_t slot = ::io_uring_cqe_get_data64(entries[i]);
      const int result = entries[i]->res;
      --queued_;
      Active& active = active_[slot];
      if (result > 0) active.done += static_cast<std::uint32_t>(result);
      const bool whole = active.done == (active.command.dwords[2] & 0xFFFF) + 1;
      if (result == -EINTR || result == -EAGAIN || (result > 0 && !whole)) {
        queue(ring, slot);
      } else {
        end(slot, result < 0 ? status_of(-result) : kOk);
      }
    }
    ::io_uring_cq_advance(ring.get(), count);
    collected = true;
  }
  return collected;
}

void RingController::end(std::size_t slot, nvme::Status status) {
  free_.push_back(slot);
  const Active& active = active_[slot];
  if (active.faulty && config_.fault == RingFault::delayed) {
    held_.push_back({active, status, now_ns() + kDelayNs, 0});
  } else if (active.faulty && config_.fault == RingFault::reordered) {
    held_.push_back({active, status, now_ns() + kDelayNs, posted_ + kOvertaking});
  } else {
    post(active, status);
  }
}

bool RingController::release_held() {
  if (held_.empty()) return false;
  const Held& oldest = held_.front();
  if (now_ns() < oldest.due_ns && (oldest.after == 0 || posted_ < oldest.after)) return false;
  post(oldest.active, oldest.status);
  held_.pop_front();
  return true;
}

void RingController::post(const Active& active, nvme::Status status) {
  Lane& lane = lanes_[active.lane];
  const std::uint32_t entries = lane.queue.entries;
  const auto index = static_cast<std::uint32_t>(lane.completed % entries);
  const std::uint32_t head = SystemMemory::load_acquire(*lane.queue.head_doorbell);
  if (head >= entries) throw Failure(fmt::format("doorbell value {} is outside queue {}", head, active.lane));
  if ((index + 1) % entries == head) {
    throw Failure(fmt::format("completion queue {} is full", active.lane));
  }
  nvme::CompletionEntry& entry = lane.queue.completions[index];
  entry.result = active.done;
  const bool phase = lane.completed / entries % 2 == 0;
  SystemMemory::store_release(
      entry.state, nvme::completion_state(static_cast<std::uint16_t>(lane.head),
                                          static_cast<std::uint16_t>(active.lane), active.command.id(), phase, status)
                       .bits);
  ++lane.completed;
  ++posted_;
}

}  // namespace feedrate::storage
