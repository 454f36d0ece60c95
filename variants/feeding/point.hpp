#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/axes.hpp"
#include "common/load_shape.hpp"

namespace feedrate {

inline constexpr auto kNoTransfer = "none";
inline constexpr std::size_t kMostPayload = std::size_t{64} << 20;     // bytes
inline constexpr std::size_t kMostSlotMemory = std::size_t{32} << 30;  // pinned bytes that one cell may take

/// One point of the experiment `feeding`: a value on each of its axes, among them those of the load. Sizes in bytes,
/// counts in messages.
struct Point : LoadShape {
  std::string queue = "gpu_ring";
  std::string transfer = "pinned";  ///< "none" for queues that move messages themselves
  std::string workload = "echo";
  std::string device = "auto";
  std::size_t batch = 64;              ///< most messages handed on at once: by a publish, to a transfer
  std::uint64_t batch_timeout_us = 0;  ///< how long a producer holds back a batch that is not full
  std::size_t window = 256;            ///< messages in flight per producer; 1 measures the lone message's latency
  unsigned producers = 1;              ///< threads; as many collectors
  unsigned workers = 1;                ///< threads between a broker queue and the device
  unsigned block = 256;                ///< GPU threads per block
  std::size_t capacity = 0;            ///< messages a queue holds per producer before it pushes back; 0 = the window
  std::string touch = "all";           ///< which bytes of a message the host writes and checks; "stamp": few of most
  Values own = {};  ///< the axes of the queue, the transfer and the workload themselves

  friend bool operator==(const Point&, const Point&) = default;
};

}  // namespace feedrate
