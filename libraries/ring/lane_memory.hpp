#pragma once
#include <deque>
#include <vector>

#include "common/device/polled_memory.hpp"
#include "common/ring/lane_ends.hpp"
#include "feedrate/ring.hpp"

/// The host's side of a lane and its memory: both ends, and the operations to stop and restart it.
namespace feedrate {

class HostLane : public RingLane {
 public:
  /// The lane at the addresses that the pollers use.
  virtual LaneView view() const = 0;
  virtual void request_stop(std::uint64_t how) = 0;

  std::uint64_t published() const { return SystemMemory::load_relaxed(*host_.ring.published) & kCountMask; }
  std::uint64_t released() const { return SystemMemory::load_relaxed(*host_.ring.released); }
  /// Returns, in ascending order, the numbers of published messages that have no result or whose result waits for an
  /// earlier one.
  std::vector<std::uint64_t> unserved() const;
  std::uint64_t id_of(std::uint64_t number) const;
  bool parked() const { return SystemMemory::load_acquire(host_.parking->parked) != 0; }
  std::uint64_t position() const { return host_.parking->position; }
  void unpark() { SystemMemory::store_release(host_.parking->parked, 0); }

 protected:
  LaneView host_;  // the lane at the addresses that the host uses

 private:
  bool served(std::uint64_t number) const;
};

/// How many small pieces of polled memory a lane takes.
std::size_t polled_pieces(const RingConfig&);
/// A lane in `memory`, which must outlive it. `recorder`: where the pollers record when they work on sampled messages.
std::unique_ptr<HostLane> make_lane(Device&, PolledMemory& memory, const RingConfig&,
                                    const RecorderState& recorder = {});

}  // namespace feedrate
