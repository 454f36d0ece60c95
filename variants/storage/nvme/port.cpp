#include "variants/storage/nvme/port.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "common/error.hpp"
#include "variants/storage/nvme/prp.hpp"

namespace feedrate::storage::nvme {

DmaMemory::DmaMemory(Port& port, std::size_t bytes) {
  const std::size_t rounded = pages_of(0, bytes) * kPage;
  void* const data = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw Failure(
        fmt::format("{}: cannot allocate {} bytes for the device: {}", port.name(), rounded, std::strerror(errno)));
  }
  data_ = {static_cast<std::byte*>(data), rounded};
  try {
    mapping_ = DmaMapping(port, data_);
  } catch (...) {
    ::munmap(data, rounded);
    throw;
  }
}

DmaMemory::~DmaMemory() {
  if (data_.empty()) return;
  mapping_ = {};  // the device's access ends before the memory is freed
  ::munmap(data_.data(), data_.size());
}

}  // namespace feedrate::storage::nvme
