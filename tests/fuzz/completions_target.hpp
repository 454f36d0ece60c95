#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/storage/rings.hpp"

namespace feedrate::test {

/// Reads completion entries with arbitrary contents, as device threads read them: identifiers out of range, repeated
/// ones, any phase. Aborts if it finds an error that a sanitizer would not detect.
inline void drain_foreign_completions(const std::uint8_t* data, std::size_t size) {
  using namespace storage;
  if (size == 0) return;
  const std::uint32_t entries = 2 + data[0] % 9;
  std::vector<nvme::CompletionEntry> completions(entries);
  std::vector<std::uint64_t> outcomes(entries - 1);  // exactly this size, so that accesses beyond the end are detected
  rings::QueueState state{};
  std::uint32_t doorbell = 0;
  rings::Queue queue;
  queue.completions = completions.data();
  queue.head_doorbell = &doorbell;
  queue.entries = entries;
  queue.state = &state;
  queue.outcomes = outcomes.data();
  const std::size_t bytes = entries * sizeof(nvme::CompletionEntry);
  for (std::size_t at = 1; at < size; at += bytes) {
    std::memcpy(completions.data(), data + at, std::min(bytes, size - at));
    const std::uint64_t before = state.head;
    const bool found = rings::drain(OneLane(), queue);
    if (found != (state.head != before) || state.head - before > entries) std::abort();
    if (state.draining != 0 || doorbell != state.head % entries) std::abort();
    for (const std::uint64_t word : outcomes) {
      if (word != 0 && !rings::Outcome{word}.ended()) std::abort();
    }
  }
}

}  // namespace feedrate::test
