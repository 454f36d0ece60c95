#include "common/device/cuda_pages.hpp"

#include <utility>

#include "common/device/cuda_stream.hpp"
#include "common/ring/memory.hpp"

namespace feedrate {
namespace {

constexpr int kReads = 8;  // some meet other traffic

struct PageWords {
  std::uint64_t read, cycles;
};

__global__ void read_pages(std::byte* memory, unsigned pages, std::size_t page_bytes) {
  for (unsigned page = 0; page < pages; ++page) {
    auto& words = *reinterpret_cast<PageWords*>(memory + page * page_bytes);
    std::uint32_t shortest = ~0u;
    for (int i = 0; i < kReads; ++i) {
      const std::uint32_t begin = clock();
      // The acquire makes the second reading of the clock wait for the value.
      const std::uint64_t value = SystemMemory::load_acquire(words.read);
      shortest = min(shortest, static_cast<std::uint32_t>(clock()) - begin + static_cast<std::uint32_t>(value));
    }
    words.cycles = shortest;
  }
}

}  // namespace

std::vector<std::uint32_t> cuda_page_read_cycles(std::byte* pinned, std::size_t pages, std::size_t page_bytes) {
  const auto words = [&](std::size_t page) { return reinterpret_cast<PageWords*>(pinned + page * page_bytes); };
  for (std::size_t page = 0; page < pages; ++page) *words(page) = {};
  CudaStream stream;
  read_pages<<<1, 1, 0, stream.get()>>>(pinned, static_cast<unsigned>(pages), page_bytes);
  check(cudaGetLastError(), "launching read_pages");
  stream.synchronize();
  std::vector<std::uint32_t> cycles;
  for (std::size_t page = 0; page < pages; ++page) {
    cycles.push_back(static_cast<std::uint32_t>(std::exchange(*words(page), {}).cycles));
  }
  return cycles;
}

}  // namespace feedrate
