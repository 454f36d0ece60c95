#pragma once
#include <cstdint>
#include <span>

#include "common/message/message.hpp"

/// What the driver does to every single message, for many at once, in vectors of up to 64 bytes and for several
/// instruction sets: making payloads and checking echoes must outrun the fastest queue.
namespace feedrate {

/// What comparing results showed.
struct Checked {
  bool right;              ///< each is what becomes of the message whose id it carries
  bool consecutive;        ///< their ids count up
  std::uint64_t first_id;  ///< if they do, from here on
};

struct RunPasses {
  const char* instructions;
  /// Writes headers, ids counting up, and payloads as payload.hpp defines them; not a byte behind a payload.
  void (*fill)(std::uint64_t seed, std::uint64_t first_id, std::size_t payload, Messages);
  /// Whether every result is the message whose id it carries, with one added to each 32-bit word, and its header says
  /// so. Ids that do not count up are left in `ids`. Reads all of every result, right or wrong.
  Checked (*check_echoes)(std::uint64_t seed, std::size_t payload, ConstMessages results, std::uint64_t* ids);
};

/// Those that this CPU can run, the fastest first; the last one is for every CPU.
std::span<const RunPasses> run_passes();
inline const RunPasses& fastest_passes() {
  static const RunPasses& fastest = run_passes().front();
  return fastest;
}

}  // namespace feedrate
