#pragma once
#include "common/ring/memory.hpp"

/// The ring protocol. One ring carries messages from one producer through a server (GPU threads or a worker) to one
/// collector. Slot i of `in` and slot i of `out` belong to the same message. The three cursors never decrease:
///
///     producer ──published──▶ server ──completed──▶ collector ──released──▶ producer
///
/// A message's number determines its slots, so its `in` slot and `out` slot are free again as soon as `released` has
/// passed the number. Only the producer checks for free slots (published - released <= capacity); the server never has
/// to. Each cursor has one writer, which stores it with release order after writing slots, and one reader, which loads
/// it with acquire order before reading slots. No other ordering is needed. A request to stop is a bit of `published`
/// itself, so that the server sees the request with the same single load that it uses to poll. Each side keeps a
/// private copy of the peer's cursor and reads the cursor again only when the copy shows no messages or no free slots
/// (as in rigtorp/SPSCQueue).
namespace feedrate {

/// Aligned to 128 bytes: no two cursors share a cache line, or a pair of lines that the host prefetches together.
struct alignas(128) Cursor {
  std::uint64_t value;
};

/// Bits of `published`: stop once all published messages are served, or at the next poll.
inline constexpr std::uint64_t kStopWhenDone = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kStopNow = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kCountMask = kStopNow - 1;

struct RingCursors {
  Cursor published, completed, released;
};

/// Locations of a ring: plain pointers, so that the view can be passed to a kernel by value. The two sides may use
/// different pointers to the same ring, or to two rings that are kept identical by copying.
struct RingView {
  std::uint64_t* published = nullptr;
  std::uint64_t* completed = nullptr;
  std::uint64_t* released = nullptr;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t in_stride = 0;   ///< bytes per message, with header and padding
  std::uint32_t out_stride = 0;  ///< bytes per result
  std::uint64_t capacity = 0;    ///< number of slots: a power of two below 2^30

  FEEDRATE_HD std::uint64_t slot(std::uint64_t number) const { return number & (capacity - 1); }
  /// How many of `n` messages, starting at `number`, are contiguous before the ring wraps.
  FEEDRATE_HD std::uint64_t contiguous(std::uint64_t number, std::uint64_t n) const {
    const std::uint64_t room = capacity - slot(number);
    return n < room ? n : room;
  }
  FEEDRATE_HD std::byte* in_slot(std::uint64_t number) const { return in + slot(number) * in_stride; }
  FEEDRATE_HD std::byte* out_slot(std::uint64_t number) const { return out + slot(number) * out_stride; }
};

/// Returns a view of a ring of `capacity` slots at `in` and at `out`, with strides in bytes; the view refers to
/// `cursors`, `in` and `out`.
inline RingView ring_at(RingCursors& cursors, std::byte* in, std::byte* out, std::size_t in_stride,
                        std::size_t out_stride, std::uint64_t capacity) {
  return {&cursors.published.value,
          &cursors.completed.value,
          &cursors.released.value,
          in,
          out,
          static_cast<std::uint32_t>(in_stride),
          static_cast<std::uint32_t>(out_stride),
          capacity};
}

/// Stops the server; `how` is kStopWhenDone or kStopNow. Call it when the producer will publish no more messages.
template <class Memory = SystemMemory>
void request_stop(const RingView& ring, std::uint64_t how) {
  Memory::or_release(*ring.published, how);
}

/// The producer's count of free slots. For use by one thread at a time.
template <class Memory = SystemMemory>
class BasicRingRoom {
 public:
  explicit BasicRingRoom(RingView ring) : ring_(ring) {}
  /// Returns how many of `n` messages may be written now.
  std::uint64_t room(std::uint64_t n) {
    std::uint64_t free = ring_.capacity - (published_ - released_);
    if (free < n) {
      released_ = Memory::load_acquire(*ring_.released);
      free = ring_.capacity - (published_ - released_);
    }
    return n < free ? n : free;
  }
  std::uint64_t published() const { return published_; }
  void publish(std::uint64_t n) {
    published_ += n;
    Memory::store_release(*ring_.published, published_);
  }

 private:
  RingView ring_;
  std::uint64_t published_ = 0, released_ = 0;
};

/// The producer's end of a ring. For use by one thread at a time.
template <class Memory = SystemMemory>
class BasicRingProducer {
 public:
  explicit BasicRingProducer(RingView ring) : ring_(ring), room_(ring) {}
  /// Returns contiguous space for up to `n` messages; empty if the ring is full.
  Messages reserve(std::uint64_t n) {
    const std::uint64_t first = room_.published();
    return {ring_.in_slot(first), ring_.in_stride, ring_.contiguous(first, room_.room(n))};
  }
  void publish(std::uint64_t n) { room_.publish(n); }
  std::uint64_t published() const { return room_.published(); }

 private:
  RingView ring_;
  BasicRingRoom<Memory> room_;
};

/// The server of a ring, if there is only one: a worker thread.
template <class Memory = SystemMemory>
class BasicRingServer {
 public:
  explicit BasicRingServer(RingView ring) : ring_(ring) {}
  /// Number of published messages that are not yet taken.
  std::uint64_t waiting() {
    if (published_ == taken_) {
      const std::uint64_t word = Memory::load_acquire(*ring_.published);
      published_ = word & kCountMask;
      stop_ = word & ~kCountMask;
    }
    return published_ - taken_;
  }
  /// Whether there are no more messages to serve; valid after `waiting`.
  bool ended() const { return (stop_ & kStopNow) != 0 || (stop_ != 0 && published_ == taken_); }
  std::uint64_t taken() const { return taken_; }
  /// Takes the next `n` messages, which the caller will serve. More messages may be taken before these are completed.
  void take(std::uint64_t n) { taken_ += n; }
  /// Announces that the results of the oldest `n` taken messages are in their `out` slots.
  void complete(std::uint64_t n) {
    completed_ += n;
    Memory::store_release(*ring_.completed, completed_);
  }

 private:
  RingView ring_;
  std::uint64_t published_ = 0, taken_ = 0, completed_ = 0, stop_ = 0;
};

/// The collector's end of a ring. For use by one thread at a time.
template <class Memory = SystemMemory>
class BasicRingCollector {
 public:
  explicit BasicRingCollector(RingView ring) : ring_(ring) {}
  /// Returns up to `n` of the next results, contiguous; empty if there are none. Results stay valid until released.
  ConstMessages poll(std::uint64_t n) {
    if (completed_ == released_) completed_ = Memory::load_acquire(*ring_.completed);
    const std::uint64_t ready = completed_ - released_;
    return {ring_.out_slot(released_), ring_.out_stride, ring_.contiguous(released_, ready < n ? ready : n)};
  }
  void release(std::uint64_t n) {
    released_ += n;
    Memory::store_release(*ring_.released, released_);
  }

 private:
  RingView ring_;
  std::uint64_t completed_ = 0, released_ = 0;
};

using RingProducer = BasicRingProducer<>;
using RingServer = BasicRingServer<>;
using RingCollector = BasicRingCollector<>;

}  // namespace feedrate
