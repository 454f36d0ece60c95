#pragma once
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "common/device/device.hpp"

namespace feedrate::storage {

/// Copies between host and device memory, on several streams in turn. No call waits for a copy: an event follows each
/// group of copies, and the groups of a stream end in order. Requests are identified by slots.
class Copies {
 public:
  Copies(Device& device, std::size_t streams, Direction direction)
      : device_(device), direction_(direction), lanes_(streams) {
    for (Lane& lane : lanes_) lane.stream = device.stream();
  }
  /// Waits for all copies.
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

  /// Queues a group of copies, for which the requests in `slots` wait.
  void start(std::span<const Copy> copies, std::span<const std::size_t> slots) {
    Lane& lane = lanes_[next_++ % lanes_.size()];
    if (copies.size() > 1 && device_.copies_in_batches()) {
      lane.stream->copy_batch(copies, direction_);
    } else {
      for (const Copy& copy : copies) {
        if (direction_ == Direction::to_device) lane.stream->copy_to_device(copy.to, copy.from, copy.bytes);
        if (direction_ == Direction::to_host) lane.stream->copy_to_host(copy.to, copy.from, copy.bytes);
      }
    }
    if (spare_.empty()) spare_.push_back(device_.event());
    lane.groups.push_back({std::move(spare_.back()), {slots.begin(), slots.end()}});
    spare_.pop_back();
    lane.stream->record(*lane.groups.back().event);
    running_ += slots.size();
  }
  void start(const Copy& copy, std::size_t slot) { start({&copy, 1}, {&slot, 1}); }
  /// Calls `use(slot)` for each slot whose group has ended.
  template <class Use>
  void poll(Use&& use) {
    for (Lane& lane : lanes_) {
      while (!lane.groups.empty() && lane.groups.front().event->ready()) {
        Group group = std::move(lane.groups.front());
        lane.groups.pop_front();
        running_ -= group.slots.size();
        for (const std::size_t slot : group.slots) use(slot);
        spare_.push_back(std::move(group.event));
      }
    }
  }
  /// Number of slots whose copies are not known to have ended.
  std::size_t running() const { return running_; }

 private:
  struct Group {
    std::unique_ptr<Event> event;
    std::vector<std::size_t> slots;
  };
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::deque<Group> groups;
  };
  Device& device_;
  Direction direction_;
  std::vector<std::unique_ptr<Event>> spare_;
  std::vector<Lane> lanes_;
  std::size_t next_ = 0, running_ = 0;
};

}  // namespace feedrate::storage
