#pragma once
#include <cstdint>
#include <span>

#include "common/message/message.hpp"

/// The load generator's work on every message, done for many messages at once with vectors of up to 64 bytes, for
/// several instruction sets. Generating payloads and checking echoes must be faster than the fastest queue.
namespace feedrate {

/// Outcome of comparing results.
struct Checked {
  bool right;              ///< each result is correct for the message whose id it carries
  bool consecutive;        ///< the ids are consecutive
  std::uint64_t first_id;  ///< the first of consecutive ids
};

struct RunPasses {
  const char* instructions;
  /// Writes headers with consecutive ids, and payloads as defined in payload.hpp; writes no bytes past a payload.
  void (*fill)(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages);
  /// Checks that every result is the message whose id it carries, with one added to each 32-bit word, and that its
  /// header matches. If the ids are not consecutive, writes them to `ids`. Reads every result completely, whether
  /// correct or not.
  Checked (*check_echoes)(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids);
};

/// The implementations that this CPU can run, fastest first; the last one runs on every CPU.
std::span<const RunPasses> run_passes();
inline const RunPasses& fastest_passes() {
  static const RunPasses& fastest = run_passes().front();
  return fastest;
}

}  // namespace feedrate
