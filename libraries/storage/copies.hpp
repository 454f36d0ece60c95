#pragma once
#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/device/device.hpp"
#include "libraries/storage/engine.hpp"
#include "libraries/storage/scatter.hpp"

namespace feedrate::storage {

struct CopiesOptions {
  bool joins = true;      ///< neighbouring blocks become one copy, which needs host memory that was pinned at once
  bool scatters = false;  ///< a kernel makes groups of small copies; needs pinned host memory
};

/// Copies between host and device memory, in groups. A copy starts at once if few groups run; otherwise it joins the
/// next group, so that the copy engine does not pause between small copies. No call waits for a copy. Requests are
/// identified by slots.
class Copies {
 public:
  /// `groups`: number of groups that run at once, each on its own stream.
  Copies(Device& device, std::size_t groups, Direction direction, CopiesOptions options = {})
      : device_(device), direction_(direction), options_(options), lanes_(groups) {
    // Loads the kernel, because a first launch would wait for the entire device.
    if (options.scatters) device.resources(ScatterLaunch(nullptr, 1, 1));
    for (Lane& lane : lanes_) {
      lane.stream = device.stream();
      lane.ended = device.event();
      if (options.scatters) lane.list = device.allocate_host(kMostScattered * sizeof(Copy), HostMemory::pinned);
    }
  }
  /// Waits for the copies that run.
  ~Copies() {
    for (Lane& lane : lanes_) {
      try {
        lane.stream->synchronize();
      } catch (const std::exception&) {  // an earlier call has reported it
      }
    }
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  /// Adds copies, for which the request in `slot` waits, to the next group.
  void add(std::span<const Copy> copies, std::size_t slot) {
    for (const Copy& copy : copies) join(copy);
    slots_.push_back(slot);
  }
  /// Adds the copies between a request's device memory and the `bytes` of its block at `host` that are valid.
  void add(const Request& request, std::byte* host, std::size_t bytes, std::size_t slot) {
    if (request.pieces.empty()) {
      join(between(request.device, host, bytes));
    } else {
      for (const Piece& piece : request.pieces) {
        if (piece.at < bytes) join(between(piece.device, host + piece.at, std::min(piece.bytes, bytes - piece.at)));
      }
    }
    slots_.push_back(slot);
  }
  /// Starts the group that was added if fewer than the maximum number of groups run.
  void start() {
    if (slots_.empty()) return;
    for (Lane& lane : lanes_) {
      if (!lane.slots.empty()) continue;
      std::span<const Copy> rest = waiting_;
      if (const std::size_t small = scattered(); small != 0) {
        auto* const list = reinterpret_cast<Copy*>(lane.list.data());
        std::copy_n(waiting_.begin(), small, list);
        const auto largest = std::ranges::max_element(list, list + small, {}, &Copy::bytes);
        lane.stream->launch(ScatterLaunch(list, static_cast<unsigned>(small), largest->bytes));
        rest = rest.subspan(small);
      }
      if (rest.size() > 1 && device_.copies_in_batches()) {
        lane.stream->copy_batch(rest, direction_);
      } else {
        for (const Copy& copy : rest) {
          if (direction_ == Direction::to_device) lane.stream->copy_to_device(copy.to, copy.from, copy.bytes);
          if (direction_ == Direction::to_host) lane.stream->copy_to_host(copy.to, copy.from, copy.bytes);
        }
      }
      lane.stream->record(*lane.ended);
      lane.slots.swap(slots_);
      waiting_.clear();
      return;
    }
  }
  /// Calls `use(slot)` for each slot whose copies have ended, and starts the next group.
  template <class Use>
  void poll(Use&& use) {
    for (Lane& lane : lanes_) {
      if (lane.slots.empty() || !lane.ended->ready()) continue;
      ended_.swap(lane.slots);
      start();
      for (const std::size_t slot : ended_) use(slot);
      ended_.clear();
    }
    start();
  }
  /// Number of slots whose copies are not known to have ended.
  std::size_t running() const {
    std::size_t count = slots_.size();
    for (const Lane& lane : lanes_) count += lane.slots.size();
    return count;
  }

 private:
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> ended;
    std::vector<std::size_t> slots;  // empty: no group runs
    Buffer list;                     // the copies of a kernel
  };
  Copy between(std::byte* device, std::byte* host, std::size_t bytes) const {
    return direction_ == Direction::to_device ? Copy{device, host, bytes} : Copy{host, device, bytes};
  }
  void join(const Copy& copy) {
    if (options_.joins && !waiting_.empty() && follows(copy, waiting_.back())) {
      waiting_.back().bytes += copy.bytes;
    } else {
      waiting_.push_back(copy);
    }
  }
  static bool follows(const Copy& copy, const Copy& before) {
    return copy.to == before.to + before.bytes && copy.from == before.from + before.bytes;
  }
  /// Moves the copies that a kernel makes to the front; returns their number. A copy engine takes about 2 us for each
  /// copy, however small.
  std::size_t scattered() {
    constexpr std::size_t kSmall = std::size_t{64} << 10;
    if (!options_.scatters) return 0;
    const auto large =
        std::partition(waiting_.begin(), waiting_.end(), [](const Copy& copy) { return copy.bytes <= kSmall; });
    const auto small = static_cast<std::size_t>(large - waiting_.begin());
    return small > 1 ? std::min(small, kMostScattered) : 0;
  }
  Device& device_;
  Direction direction_;
  CopiesOptions options_;
  std::vector<Lane> lanes_;
  std::vector<Copy> waiting_;  // the next group
  std::vector<std::size_t> slots_, ended_;
};

}  // namespace feedrate::storage
