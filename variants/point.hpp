#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace feedrate {

/// One point of the sweep: a value on every axis. Sizes in bytes, counts in messages.
struct Point {
  std::string queue = "gpu_ring";
  std::string transfer = "pinned";  ///< "none" for queues that move messages themselves
  std::string workload = "echo";
  std::string device = "auto";
  std::size_t payload = 64;
  std::size_t batch = 64;    ///< most messages handed on at once: by a publish, to a transfer
  std::size_t window = 256;  ///< messages in flight per producer; 1 measures the lone message's latency
  unsigned producers = 1;    ///< threads; as many collectors
  unsigned workers = 1;      ///< threads between a broker queue and the device
  unsigned streams = 4;      ///< device streams per worker
  unsigned block = 256;      ///< GPU threads per block
  unsigned lanes = 0;        ///< `gpu_ring`: rings, each served by one resident block; 0 = chosen by the device
  // `gpu_ring` alone; 0 or "auto": chosen by the messages' size and number, and the machine's floors.
  unsigned pollers = 0;
  unsigned mirrors = 0;
  std::string granularity = "auto";
  std::string notify = "auto";
  std::string slots = "auto";
  std::string results = "in_order";
  std::string ring_idle = "spin";
  std::size_t slot_bytes = 0;  ///< payload bytes that a slot holds; 0 = the payload's
  std::size_t pack = 1;        ///< Redis: messages per list element or stream entry
  std::size_t capacity = 0;    ///< messages a queue holds per producer before it pushes back; 0 = the window
  double flops_per_byte = 1;   ///< `fma_chain`
  // The load: "closed" keeps the window full; else messages arrive by a schedule, whatever comes back.
  std::string arrivals = "closed";
  std::uint64_t rate = 0;      ///< messages a second of all producers together; 0 with closed load
  std::uint64_t burst_us = 0;  ///< arrivals `bursts`: how long messages arrive, then pause
  std::uint64_t pause_us = 0;
  std::string payload_mix = "none";   ///< sizes by share; `payload` is then the largest
  std::string priority_mix = "none";  ///< priorities by share
  std::string trace = "none";         ///< arrivals `trace`: the file

  friend bool operator==(const Point&, const Point&) = default;
};

inline constexpr auto kNoTransfer = "none";

/// Values of an axis, as a command line writes them.
struct AxisValues {
  std::string axis;
  std::vector<std::string> values;
};

}  // namespace feedrate
