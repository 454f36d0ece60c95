#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace feedrate {

/// Cycles that the current GPU needs to read each page of pinned memory: the shortest of several reads. Launches a
/// kernel and waits for it. The first 16 bytes of each page are used for it, and are zero afterwards.
std::vector<std::uint32_t> cuda_page_read_cycles(std::byte* pinned, std::size_t pages, std::size_t page_bytes);

}  // namespace feedrate
