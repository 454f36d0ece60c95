#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libraries/tensors/memory.hpp"

/// Determines which of several kinds of memory is the cheapest to share on this machine.
namespace feedrate::tensors {

struct Candidate {
  std::string name;
  std::function<std::unique_ptr<ChunkMemory>()> make;
};

/// The time for a candidate's chunk: medians of several rounds.
struct WayCost {
  std::string name;
  std::chrono::nanoseconds make{}, map{};  ///< creating it in this process; mapping it in another one
  std::string fault;                       ///< why the candidate cannot be used; empty if it can
};

/// Creates chunks of each candidate, lets another process map them, and returns both times. The other process is a fork
/// of this one, so the caller must have only one thread and must not have used any candidate's device yet.
std::vector<WayCost> measure_ways(const std::vector<Candidate>&, std::size_t chunk_bytes);

/// The candidate with the shortest total time for creating and mapping; null if none can be used.
const WayCost* cheapest(const std::vector<WayCost>&);

}  // namespace feedrate::tensors
