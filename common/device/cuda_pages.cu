#include "common/device/cuda_pages.hpp"

#include "common/device/cuda_stream.hpp"
#include "common/ring/memory.hpp"

namespace feedrate {
namespace {

constexpr int kReads = 8;  // some meet other traffic

__global__ void read_pages(std::byte* memory, unsigned pages, std::size_t page_bytes, std::uint32_t* cycles) {
  for (unsigned page = 0; page < pages; ++page) {
    auto* const word = reinterpret_cast<std::uint64_t*>(memory + page * page_bytes);
    std::uint32_t shortest = ~0u;
    for (int i = 0; i < kReads; ++i) {
      const std::uint32_t begin = clock();
      // The acquire makes the second reading of the clock wait for the value.
      const std::uint64_t value = SystemMemory::load_acquire(*word);
      const std::uint32_t took = static_cast<std::uint32_t>(clock()) - begin;
      shortest = value == ~std::uint64_t{0} ? 0 : min(shortest, took);
    }
    cycles[page] = shortest;
  }
}

}  // namespace

std::vector<std::uint32_t> cuda_page_read_cycles(const std::byte* pinned, std::size_t pages, std::size_t page_bytes) {
  CudaStream stream;
  std::vector<std::uint32_t> cycles(pages);
  const std::size_t bytes = pages * sizeof(std::uint32_t);
  std::byte* const there = stream.allocate(bytes);
  read_pages<<<1, 1, 0, stream.get()>>>(const_cast<std::byte*>(pinned), static_cast<unsigned>(pages), page_bytes,
                                        reinterpret_cast<std::uint32_t*>(there));
  check(cudaGetLastError(), "launching read_pages");
  stream.copy_to_host(reinterpret_cast<std::byte*>(cycles.data()), there, bytes);
  stream.free(there);
  stream.synchronize();
  return cycles;
}

}  // namespace feedrate
