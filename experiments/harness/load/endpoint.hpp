#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace feedrate
