#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

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
/// bit of `published` itself, so that the server sees both by the one load that it polls with. Each side keeps the
/// peer's cursor in a private shadow and looks again only when the shadow says "nothing there" (as in
/// rigtorp/SPSCQueue).
///
/// A ring of small messages may be *flagged* instead: every 64-bit word of a slot holds 32 bits of the message and the
/// low 32 bits of its number plus one. A word is read and written whole, so a message is there when all its words carry
/// the expected flag: nobody has to look at a cursor first, which saves the GPU a round trip over the bus on the way in
/// and a system-wide fence on the way out (the idea of NCCL's LL protocol), for twice the bytes and a copy on the host.
/// `published` is kept up for the stop bits, `completed` is not used. A slot of `in` is free when its result is there,
/// since the result was computed from it.
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
  std::uint32_t in_stride = 0;   ///< bytes of a message with its header and padding
  std::uint32_t out_stride = 0;  ///< of a result
  std::uint64_t capacity = 0;    ///< a power of two, below 2^32
  std::uint32_t flagged = 0;     ///< 1: slots hold flagged words, and take twice their stride

  FEEDRATE_HD std::uint64_t slot(std::uint64_t number) const { return number & (capacity - 1); }
  /// How many of `n` messages from `number` on lie side by side, before the ring wraps.
  FEEDRATE_HD std::uint64_t contiguous(std::uint64_t number, std::uint64_t n) const {
    const std::uint64_t room = capacity - slot(number);
    return n < room ? n : room;
  }
  FEEDRATE_HD std::byte* in_slot(std::uint64_t number) const { return in + (slot(number) * in_stride << flagged); }
  FEEDRATE_HD std::byte* out_slot(std::uint64_t number) const { return out + (slot(number) * out_stride << flagged); }
};

constexpr FEEDRATE_HD std::uint64_t flagged_word(std::uint64_t number, std::uint32_t data) {
  return (number + 1) << 32 | data;
}

/// Writes message `number`, `bytes` of it at `from`, into a flagged slot; by one host thread.
inline void store_flagged(std::byte* slot, std::uint64_t number, const std::byte* from, std::size_t bytes) {
  auto* words = reinterpret_cast<std::uint64_t*>(slot);
  for (std::size_t w = 0; w < bytes / 4; ++w) {
    std::uint32_t data = 0;
    std::memcpy(&data, from + 4 * w, sizeof data);
    SystemWord(words[w]).store(flagged_word(number, data), kRelaxed);
  }
}
/// Reads it to `to`; false while a word of it is still missing.
inline bool load_flagged(std::byte* slot, std::uint64_t number, std::byte* to, std::size_t bytes) {
  auto* words = reinterpret_cast<std::uint64_t*>(slot);
  for (std::size_t w = 0; w < bytes / 4; ++w) {
    const std::uint64_t word = SystemWord(words[w]).load(kRelaxed);
    const auto data = static_cast<std::uint32_t>(word);
    if (word != flagged_word(number, data)) return false;
    std::memcpy(to + 4 * w, &data, sizeof data);
  }
  return true;
}

/// Lets the server end: `how` is kStopWhenDone or kStopNow. For when the producer will publish nothing more.
inline void request_stop(const RingView& ring, std::uint64_t how) {
  SystemWord(ring.cursors->published.value).fetch_or(how, kRelease);
}

/// One thread at a time. Sends up to `most` messages at once.
class RingProducer {
 public:
  RingProducer(RingView ring, std::size_t most)
      : ring_(ring), most_(most), copies_(ring.flagged != 0 ? most * ring.in_stride : 0) {}
  /// Up to `n` messages to write, side by side; empty when the ring is full.
  Messages reserve(std::uint64_t n) {
    n = n < most_ ? n : most_;
    std::uint64_t room = ring_.capacity - (published_ - released_);
    if (room < n) {
      released_ = SystemWord(ring_.cursors->released.value).load(kAcquire);
      room = ring_.capacity - (published_ - released_);
    }
    n = n < room ? n : room;
    if (ring_.flagged != 0) return {copies_.data(), ring_.in_stride, n};
    return {ring_.in_slot(published_), ring_.in_stride, ring_.contiguous(published_, n)};
  }
  void publish(std::uint64_t n) {
    for (std::uint64_t i = 0; ring_.flagged != 0 && i < n; ++i) {
      store_flagged(ring_.in_slot(published_ + i), published_ + i, copies_.data() + i * ring_.in_stride,
                    ring_.in_stride);
    }
    published_ += n;
    SystemWord(ring_.cursors->published.value).store(published_, kRelease);
  }

 private:
  RingView ring_;
  std::uint64_t most_;
  std::vector<std::byte> copies_;  // of messages to be flagged
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

/// One thread at a time. Takes results up to `most` at once.
class RingCollector {
 public:
  RingCollector(RingView ring, std::size_t most)
      : ring_(ring), most_(most), copies_(ring.flagged != 0 ? most * ring.out_stride : 0) {}
  /// The next results, side by side, at most `n`; empty when there is none. They stay until released.
  ConstMessages poll(std::uint64_t n) {
    n = n < most_ ? n : most_;
    if (ring_.flagged != 0) return poll_flagged(n);
    if (completed_ == released_) completed_ = SystemWord(ring_.cursors->completed.value).load(kAcquire);
    const std::uint64_t ready = completed_ - released_;
    return {ring_.out_slot(released_), ring_.out_stride, ring_.contiguous(released_, ready < n ? ready : n)};
  }
  void release(std::uint64_t n) {
    released_ += n;
    SystemWord(ring_.cursors->released.value).store(released_, kRelease);
  }

 private:
  ConstMessages poll_flagged(std::uint64_t n) {
    std::uint64_t ready = 0;
    while (ready < n && load_flagged(ring_.out_slot(released_ + ready), released_ + ready,
                                     copies_.data() + ready * ring_.out_stride, ring_.out_stride)) {
      ++ready;
    }
    return {copies_.data(), ring_.out_stride, ready};
  }

  RingView ring_;
  std::uint64_t most_;
  std::vector<std::byte> copies_;  // of flagged results
  std::uint64_t completed_ = 0, released_ = 0;
};

}  // namespace feedrate
