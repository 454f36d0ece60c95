#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace feedrate {

/// What load can be offered to: reads of a drive, batches of a data loader, requests to a server. Used by one thread.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  /// Begins request `number`, which counts up from 0 in each phase. `slot`, below the window, is its own until it has
  /// ended: for a buffer, say. False: there is no room now. Never blocks. Throws Failure.
  virtual bool submit(std::size_t slot, std::uint64_t number) = 0;
  /// Writes the slots of requests that have ended, checked, into `ended`; returns how many. Never blocks. Throws
  /// Failure.
  virtual std::size_t poll(std::span<std::size_t> ended) = 0;
};

}  // namespace feedrate
