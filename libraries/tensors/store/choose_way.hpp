#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libraries/tensors/memory.hpp"

/// Which of several kinds of memory is the cheapest to share here.
namespace feedrate::tensors {

struct Candidate {
  std::string name;
  std::function<std::unique_ptr<ChunkMemory>()> make;
};

/// What a candidate's chunk took: medians of some.
struct WayCost {
  std::string name;
  std::chrono::nanoseconds make{}, map{};  ///< in this process; in another one
  std::string fault;                       ///< why it can't be used; empty where it can
};

/// Makes chunks of each candidate, has another process map them, and says what both took. That process is a fork of
/// this one: the caller has one thread, and no candidate's device has been used by this process yet.
std::vector<WayCost> measure_ways(const std::vector<Candidate>&, std::size_t chunk_bytes);

/// The one that takes least, making and mapping together; null where none can be used.
const WayCost* cheapest(const std::vector<WayCost>&);

}  // namespace feedrate::tensors
