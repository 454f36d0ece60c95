#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include <feedrate/ring.hpp>

namespace feedrate::python {

/// Adjacent messages or results in the slots of one lane.
struct Block {
  unsigned lane = 0;
  std::byte* base = nullptr;
  std::size_t stride = 0, count = 0;
  bool failed = false;  ///< some of the results are faults

  Header& header(std::size_t i) const { return *reinterpret_cast<Header*>(base + i * stride); }
};

/// Sends and receives many messages at a time, written and read in place. One thread at a time sends, and one thread at
/// a time receives; they may be different threads.
class Views {
 public:
  Views(Device&, const Kernel&, const RingConfig&);
  /// Returns up to `n` empty messages from the next lane that has room. Their headers are filled: ids count up, and
  /// every length is message_bytes. Returns nothing if all lanes are full. Throws Failure if another block is open, or
  /// after stop().
  std::optional<Block> reserve(std::size_t n);
  /// Sends the first `n` messages of the open block and cancels the reservation of the others; 0 cancels all. If a
  /// length is above message_bytes, cancels the block and throws BadInput.
  void publish(std::size_t n);
  /// Returns up to `n` results from the next lane that has some.
  std::optional<Block> poll(std::size_t n);
  /// Ends the open block and frees its slots.
  void release();
  void stop(RingStop how, std::chrono::nanoseconds patience);
  /// Pauses (true) or resumes (false) sending. Pauses nest; during a pause reserve() finds no room.
  void pause(bool on);
  /// Whether no kernel of this ring is on the GPU and no block of messages is open.
  bool parked();
  /// Whether no kernel of this ring is on the GPU.
  bool resting() const;
  void check() { ring_.check(); }
  RingStats stats() const { return ring_.stats(); }

 private:
  void start();

  RingConfig config_;
  GpuRing ring_;
  std::mutex in_, out_, start_mutex_;
  std::optional<Block> sending_, receiving_;
  unsigned next_in_ = 0, next_out_ = 0;
  std::uint64_t next_id_ = 0;
  std::atomic<bool> started_{false}, stopped_{false};
  int paused_ = 0;  // protected by in_
};

}  // namespace feedrate::python
