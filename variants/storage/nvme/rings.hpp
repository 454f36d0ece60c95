#pragma once
#include <cstdint>

#include "kernels/storage/nvme.hpp"

/// The two queues of a queue pair as the host sees them, for host and device code (section 4.1). The memory may be the
/// host's or a GPU's. A ring is used by one thread at a time.
namespace feedrate::storage::nvme {

/// A submission queue: the host writes entries at the tail, the controller fetches them from the head.
class SubmissionRing {
 public:
  /// `size`: number of entries, 2 to 65536; one of them stays empty. `doorbell`: the queue's tail doorbell.
  FEEDRATE_HD SubmissionRing(Command* entries, std::uint32_t size, std::uint32_t* doorbell)
      : entries_(entries), doorbell_(doorbell), size_(size) {}

  /// Number of entries that can be written before the controller has fetched more.
  FEEDRATE_HD std::uint32_t room() const { return size_ - 1 - distance(head_, tail_); }
  /// Writes an entry. The ring must have room.
  FEEDRATE_HD void put(const Command& command) {
    entries_[tail_] = command;
    tail_ = tail_ + 1 == size_ ? 0 : tail_ + 1;
  }
  /// Announces the entries written since the last call, if there are any.
  FEEDRATE_HD void ring() {
    if (announced_ == tail_) return;
    announced_ = tail_;
    nvme::ring(*doorbell_, tail_);
  }
  /// Takes over the head that a completion reports. Returns false, and changes nothing, if the controller cannot have
  /// fetched the entries before this head, because they have not been announced.
  FEEDRATE_HD bool advance(std::uint32_t head) {
    if (head >= size_ || distance(head_, head) > distance(head_, announced_)) return false;
    head_ = head;
    return true;
  }

 private:
  FEEDRATE_HD std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return to >= from ? to - from : to + size_ - from;
  }

  Command* entries_;
  std::uint32_t* doorbell_;
  std::uint32_t size_, head_ = 0, tail_ = 0, announced_ = 0;
};

/// A completion, as the controller wrote it.
struct Completed {
  CompletionState state;
  std::uint32_t result = 0;
};

/// A completion queue: the controller writes entries, the host polls their phase tags.
class CompletionRing {
 public:
  /// `size`: number of entries, 2 to 65536, all zero. `doorbell`: the queue's head doorbell.
  FEEDRATE_HD CompletionRing(CompletionEntry* entries, std::uint32_t size, std::uint32_t* doorbell)
      : entries_(entries), doorbell_(doorbell), size_(size) {}

  /// Takes the next entry. Returns false if the controller has not written it yet.
  FEEDRATE_HD bool poll(Completed& completed) {
    CompletionEntry& entry = entries_[head_];
    completed.state = load_state(entry);
    if (completed.state.phase() != phase_) return false;
    completed.result = entry.result;
    if (++head_ == size_) {
      head_ = 0;
      phase_ = !phase_;
    }
    return true;
  }
  /// Returns the entries taken since the last call to the controller, if there are any.
  FEEDRATE_HD void ring() {
    if (announced_ == head_) return;
    announced_ = head_;
    nvme::ring(*doorbell_, head_);
  }

 private:
  CompletionEntry* entries_;
  std::uint32_t* doorbell_;
  std::uint32_t size_, head_ = 0, announced_ = 0;
  bool phase_ = true;
};

}  // namespace feedrate::storage::nvme
