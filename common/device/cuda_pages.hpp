#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace feedrate {

/// Cycles that the current GPU needs to read each page of pinned memory: the shortest of several reads.
std::vector<std::uint32_t> cuda_page_read_cycles(const std::byte* pinned, std::size_t pages, std::size_t page_bytes);

}  // namespace feedrate
