#pragma once
#include <cstdint>

#include "common/message.hpp"
#include "common/ring/atomic.hpp"

/// The ring protocol: one ring carries messages from one producer past one server (a GPU block, a worker thread) to one
/// collector. Slot i of `in` and slot i of `out` belong to the same message. Three cursors only ever grow:
///
///     producer ──published──▶ server ──completed──▶ collector ──released──▶ producer
///
/// A message's number is its place in the ring, so `in` slot and `out` slot are free again as soon as `released` has
/// passed it: the producer alone watches for room (published - released <= capacity), the server never has to. Each
/// cursor has one writer, which stores it with release order after writing slots; its one reader loads it with acquire
/// order before reading slots. Nothing else orders anything. A request to stop is a
/// bit of `published` itself, so that the server sees both by the one load that it polls with. Each side keeps the peer's cursor in a private shadow and looks again only when the shadow says
/// "nothing there" (as in rigtorp/SPSCQueue).
namespace feedrate {

/// 128 bytes: no two cursors share a line, nor a pair of lines that the host prefetches together.
struct alignas(128) Cursor {
  std::uint64_t value;
};

/// Set in `published`: end once everything published is served, or at the next look.
inline constexpr std::uint64_t kStopWhenDone = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kStopNow = std::uint64_t{1} << 62;

struct RingCursors {
  Cursor published, completed, released;
};

/// Where a ring lies: plain pointers, so that it can be passed to a kernel by value.
struct RingView {
  RingCursors* cursors = nullptr;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t in_stride = 0;
  std::uint32_t out_stride = 0;
  std::uint64_t capacity = 0;  ///< a power of two

  FEEDRATE_HD std::uint64_t slot(std::uint64_t number) const { return number & (capacity - 1); }
  /// How many of `n` messages from `number` on lie side by side, before the ring wraps.
  FEEDRATE_HD std::uint64_t contiguous(std::uint64_t number, std::uint64_t n) const {
    const std::uint64_t room = capacity - slot(number);
    return n < room ? n : room;
  }
  FEEDRATE_HD std::byte* in_slot(std::uint64_t number) const { return in + slot(number) * in_stride; }
  FEEDRATE_HD std::byte* out_slot(std::uint64_t number) const { return out + slot(number) * out_stride; }
};

/// Lets the server end: `how` is kStopWhenDone or kStopNow. For when the producer will publish nothing more.
inline void request_stop(const RingView& ring, std::uint64_t how) {
  SystemWord(ring.cursors->published.value).fetch_or(how, kRelease);
}

/// One thread at a time.
class RingProducer {
 public:
  explicit RingProducer(RingView ring) : ring_(ring) {}
  /// Up to `n` slots to write, side by side; empty when the ring is full.
  Messages reserve(std::uint64_t n) {
    std::uint64_t room = ring_.capacity - (published_ - released_);
    if (room < n) {
      released_ = SystemWord(ring_.cursors->released.value).load(kAcquire);
      room = ring_.capacity - (published_ - released_);
    }
    return {ring_.in_slot(published_), ring_.in_stride, ring_.contiguous(published_, n < room ? n : room)};
  }
  void publish(std::uint64_t n) {
    published_ += n;
    SystemWord(ring_.cursors->published.value).store(published_, kRelease);
  }
 private:
  RingView ring_;
  std::uint64_t published_ = 0, released_ = 0;
};

/// One host thread or one GPU thread; the other threads of its block follow it behind a block barrier.
class RingServer {
 public:
  explicit FEEDRATE_HD RingServer(RingView ring) : ring_(ring) {}
  /// How many published messages wait to be taken.
  FEEDRATE_HD std::uint64_t waiting() {
    if (published_ == taken_) {
      const std::uint64_t word = SystemWord(ring_.cursors->published.value).load(kAcquire);
      published_ = word & (kStopNow - 1);
      stop_ = word & (kStopNow | kStopWhenDone);
    }
    return published_ - taken_;
  }
  /// After `waiting`: nothing more is to be served.
  FEEDRATE_HD bool ended() const { return (stop_ & kStopNow) != 0 || (stop_ != 0 && published_ == taken_); }
  FEEDRATE_HD std::uint64_t taken() const { return taken_; }
  /// Moves on past `n` messages that the caller will serve. Several runs may be taken before the first is completed.
  FEEDRATE_HD void take(std::uint64_t n) { taken_ += n; }
  /// The results of the oldest `n` taken messages are in their `out` slots.
  FEEDRATE_HD void complete(std::uint64_t n) {
    completed_ += n;
    SystemWord(ring_.cursors->completed.value).store(completed_, kRelease);
  }

 private:
  RingView ring_;
  std::uint64_t published_ = 0, taken_ = 0, completed_ = 0, stop_ = 0;
};

/// One thread at a time.
class RingCollector {
 public:
  explicit RingCollector(RingView ring) : ring_(ring) {}
  /// The next results, side by side, at most `most`; empty when there is none. They stay until released.
  ConstMessages poll(std::uint64_t most) {
    if (completed_ == released_) completed_ = SystemWord(ring_.cursors->completed.value).load(kAcquire);
    const std::uint64_t ready = completed_ - released_;
    return {ring_.out_slot(released_), ring_.out_stride, ring_.contiguous(released_, ready < most ? ready : most)};
  }
  void release(std::uint64_t n) {
    released_ += n;
    SystemWord(ring_.cursors->released.value).store(released_, kRelease);
  }

 private:
  RingView ring_;
  std::uint64_t completed_ = 0, released_ = 0;
};

}  // namespace feedrate
