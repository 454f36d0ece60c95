#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "libraries/storage/engine.hpp"

namespace feedrate::storage {

/// The requests of an engine: those in flight, by slot, and the completions that have not been polled.
class Slots {
 public:
  explicit Slots(std::size_t count) : requests_(count), bytes_(count) {
    for (std::size_t i = count; i-- > 0;) free_.push_back(i);
  }
  std::size_t count() const { return requests_.size(); }
  bool full() const { return free_.empty(); }
  std::size_t in_flight() const { return requests_.size() - free_.size(); }
  /// Takes a free slot for a request.
  std::size_t take(const Request& request) {
    const std::size_t slot = free_.back();
    free_.pop_back();
    requests_[slot] = request;
    bytes_[slot] = 0;
    return slot;
  }
  const Request& at(std::size_t slot) const { return requests_[slot]; }
  /// Bytes moved so far between the file and the slot.
  std::size_t& bytes(std::size_t slot) { return bytes_[slot]; }
  /// Ends a slot's request.
  void end(std::size_t slot, int error = 0) {
    ended_.push_back({requests_[slot].id, error, bytes_[slot]});
    free_.push_back(slot);
  }
  std::size_t poll(std::span<Completion> ended) {
    const std::size_t count = std::min(ended.size(), ended_.size());
    std::copy_n(ended_.begin(), count, ended.begin());
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

 private:
  std::vector<Request> requests_;
  std::vector<std::size_t> bytes_, free_;
  std::deque<Completion> ended_;
};

inline Direction direction_of(Operation operation) {
  return operation == Operation::read ? Direction::to_device : Direction::to_host;
}

}  // namespace feedrate::storage
