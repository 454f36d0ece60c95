#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/storage/content.hpp"
#include "libraries/storage/engine.hpp"

namespace feedrate::test {

/// Writes a file with the contents of `key`.
inline storage::File content_file(const std::string& path, std::uint64_t bytes, std::uint64_t key) {
  std::vector<std::uint64_t> words((bytes + 7) / 8);
  storage::fill_content(reinterpret_cast<std::byte*>(words.data()), bytes, key, 0);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(bytes));
  return {path, bytes};
}

/// The number of wrong words in a block of device memory, counted on the host.
inline std::uint64_t wrong_words(Device& device, const std::byte* block, std::size_t bytes, std::uint64_t key,
                                 std::uint64_t offset) {
  const Buffer host = device.allocate_host(bytes, HostMemory::pinned);
  const auto stream = device.stream();
  stream->copy_to_host(host.data(), block, bytes);
  stream->synchronize();
  std::uint64_t first = ~std::uint64_t{0};
  return storage::count_wrong(host.data(), bytes, key, offset, first);
}

}  // namespace feedrate::test
