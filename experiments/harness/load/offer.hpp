#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "experiments/harness/load/result.hpp"
#include "experiments/harness/load/schedule.hpp"

namespace feedrate {

/// Target of a load: reads from a drive, batches of a data loader, requests to a server. Used by one thread.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  /// Starts request `number`, counted from 0 in each phase. The request owns `slot`, which is below the window, until
  /// it ends; the slot can select a buffer, for example. Returns false if there is no room now. Never blocks. Throws
  /// Failure.
  virtual bool submit(std::size_t slot, std::uint64_t number) = 0;
  /// Writes the slots of requests that have ended and been checked to `ended`; returns their number. Never blocks.
  /// Throws Failure.
  virtual std::size_t poll(std::span<std::size_t> ended) = 0;
};

/// Parameters of one phase of load.
struct Offering {
  double seconds = 0.5;
  std::size_t window = 1;              ///< maximum number of requests in flight
  const Schedule* schedule = nullptr;  ///< for open load; its `seconds` then replace those above
  double watchdog_seconds = 10;        ///< Failure if no request in flight ends for this long
  std::function<bool()> interrupted = [] { return false; };
};

/// Offers load from one thread until the phase is over and all submitted requests have ended. Closed load keeps the
/// window full; requests that end before the first window has ended do not count. Open load submits each request when
/// it is due, or as soon afterwards as there is room; its time is measured from its due time.
LoadResult offer(Endpoint&, const Offering&);

}  // namespace feedrate
