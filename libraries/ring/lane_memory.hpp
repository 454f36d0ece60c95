#pragma once
#include <deque>
#include <vector>

#include "common/ring/lane_ends.hpp"
#include "feedrate/ring.hpp"

/// A lane with its memory, as the host has it: both ends, and what stopping and restarting need.
namespace feedrate {

class HostLane : public RingLane {
 public:
  /// As the pollers reach it.
  virtual LaneView view() const = 0;
  virtual void request_stop(std::uint64_t how) = 0;

  std::uint64_t published() const { return SystemMemory::load_relaxed(*host_.ring.published) & kCountMask; }
  std::uint64_t released() const { return SystemMemory::load_relaxed(*host_.ring.released); }
  /// The numbers of the messages that are published and have no result, or one that waits for an earlier one's;
  /// ascending.
  std::vector<std::uint64_t> unserved() const;
  std::uint64_t id_of(std::uint64_t number) const;
  bool parked() const { return SystemMemory::load_acquire(host_.parking->parked) != 0; }
  std::uint64_t position() const { return host_.parking->position; }
  void unpark() { SystemMemory::store_release(host_.parking->parked, 0); }

 protected:
  LaneView host_;  // as the host reaches it

 private:
  bool served(std::uint64_t number) const;
};

/// `marks`: where the pollers note when they work on sampled messages.
std::unique_ptr<HostLane> make_lane(Device&, const RingConfig&, const Marks& marks = {});

}  // namespace feedrate
