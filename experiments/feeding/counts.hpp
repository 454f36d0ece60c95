#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "variants/feeding/queue.hpp"

namespace feedrate {

/// Numbers of messages.
struct Counts {
  std::uint64_t sent = 0, received = 0, lost = 0, duplicated = 0, corrupted = 0, reordered = 0;
};

/// Description of wrong results; empty if the queue kept its guarantee. Duplicates are no failure of an at-least-once
/// queue, and losses through a planted fault are no failure of an at-most-once queue.
inline std::string wrong_results(const Counts& counts, Delivery delivery, bool fault_planted = false) {
  const bool duplicates_allowed = delivery == Delivery::at_least_once;
  const bool losses_allowed = delivery == Delivery::at_most_once && fault_planted;
  const bool right =
      counts.corrupted == 0 && (counts.duplicated == 0 || duplicates_allowed) && (counts.lost == 0 || losses_allowed);
  if (right) return "";
  return fmt::format("wrong results: {} lost, {} duplicated, {} corrupted of {} sent", counts.lost, counts.duplicated,
                     counts.corrupted, counts.sent);
}

}  // namespace feedrate
