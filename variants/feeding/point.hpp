#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/axes.hpp"
#include "common/load_shape.hpp"

namespace feedrate {

inline constexpr auto kNoTransfer = "none";
inline constexpr std::size_t kMaxPayload = std::size_t{64} << 20;     // bytes
inline constexpr std::size_t kMaxSlotMemory = std::size_t{32} << 30;  // maximum pinned bytes per cell

/// One point of the `feeding` experiment: a value for each of its axes, including the axes of the load. Sizes are in
/// bytes, counts in messages.
struct Point : LoadShape {
  std::string queue = "gpu_ring";
  std::string transfer = "pinned";  ///< "none" for queues that move messages themselves
  std::string workload = "echo";
  std::string device = "auto";
  std::size_t batch = 64;              ///< maximum number of messages per publish or per call of a transfer
  std::uint64_t batch_timeout_us = 0;  ///< how long a producer holds back a partial batch
  std::size_t window = 256;            ///< messages in flight per producer; 1 measures the lone message's latency
  unsigned producers = 1;              ///< number of producer threads, and of collector threads
  unsigned workers = 1;                ///< threads between a broker queue and the device
  unsigned block = 256;                ///< GPU threads per block
  std::size_t capacity = 0;            ///< messages per producer that a queue holds before it is full; 0 = the window
  std::string touch = "all";           ///< message bytes that the host writes and checks; "stamp": only a few of most
  Values own = {};                     ///< values of the queue's, the transfer's and the workload's own axes

  friend bool operator==(const Point&, const Point&) = default;
};

}  // namespace feedrate
