#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include <feedrate/ring.hpp>

namespace feedrate::python {

/// Messages or results side by side, in the slots of one lane.
struct Block {
  unsigned lane = 0;
  std::byte* base = nullptr;
  std::size_t stride = 0, count = 0;
  bool failed = false;  ///< some of the results are faults

  Header& header(std::size_t i) const { return *reinterpret_cast<Header*>(base + i * stride); }
};

/// Many messages at a time, written and read where they lie. One thread sends and one receives; the two may be
/// different.
class Views {
 public:
  Views(Device&, const Kernel&, const RingConfig&);
  /// Up to `n` empty messages of the next lane that has room, their headers filled: ids count up, and every length is
  /// message_bytes. Nothing when all lanes are full. Throws Failure when another block is open, or after stop().
  std::optional<Block> reserve(std::size_t n);
  /// Sends the first `n` of the open block; the others are as if they had not been reserved. 0 gives it up. Throws
  /// BadInput, and gives it up, when a length is above message_bytes.
  void publish(std::size_t n);
  /// Up to `n` results of the next lane that has some.
  std::optional<Block> poll(std::size_t n);
  /// Ends the open block: its slots are free again.
  void release();
  void stop(RingStop how, std::chrono::nanoseconds patience);
  /// Until as many calls with false as with true, reserve() finds no room.
  void pause(bool on);
  /// Nothing holds the GPU, and no block of messages is open.
  bool parked();
  /// Nothing holds the GPU.
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
  int paused_ = 0;  // under in_
};

}  // namespace feedrate::python
