#include "libraries/storage/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/error.hpp"

namespace feedrate::storage {

OpenFiles::OpenFiles(const EngineConfig& config)
    : files_(config.files), flags_(config.operation == Operation::read ? O_RDONLY : O_RDWR), direct_(config.direct) {
  reopen();
}

void OpenFiles::reopen() {
  open_.clear();
  for (const File& file : files_) open_.emplace_back(file.path, flags_);
  if (!direct_) return;
  for (const File& file : files_) open_.emplace_back(file.path, flags_ | O_DIRECT);
}

std::vector<int> OpenFiles::all() const {
  std::vector<int> found;
  for (const Descriptor& each : open_) found.push_back(each.get());
  return found;
}

Completion move_block(Operation operation, int descriptor, std::byte* host, const Request& request) {
  Completion done{.id = request.id};
  while (done.bytes < request.bytes) {
    const std::size_t left = request.bytes - done.bytes;
    const auto offset = static_cast<off_t>(request.offset + done.bytes);
    const ssize_t moved = operation == Operation::read ? ::pread(descriptor, host + done.bytes, left, offset)
                                                       : ::pwrite(descriptor, host + done.bytes, left, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) done.error = errno;
    if (moved <= 0) break;
    done.bytes += static_cast<std::size_t>(moved);
  }
  return done;
}

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

Buffer huge_pages(std::size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw Failure(fmt::format("cannot allocate {} bytes of staging memory", bytes));
  ::madvise(data, bytes, MADV_HUGEPAGE);  // a system without huge pages uses small ones
  std::memset(data, 0, bytes);
  return {static_cast<std::byte*>(data), bytes, [bytes](std::byte* p) { ::munmap(p, bytes); }};
}

}  // namespace

Staging::Staging(Device& device, std::size_t slots, std::size_t bytes, HostMemory memory)
    : stride_(rounded_up(bytes, kDirectAlignment)), memory_(huge_pages(rounded_up(slots * stride_, kHugePage))) {
  if (memory == HostMemory::pageable) return;
  try {
    pinned_ = device.pin(memory_.data(), memory_.size());
  } catch (const Failure& failure) {
    throw Failure(
        fmt::format("{} bytes of staging memory cannot be pinned ({}); raise `ulimit -l`, or choose a "
                    "smaller --block or --depth",
                    memory_.size(), failure.what()));
  }
}

}  // namespace feedrate::storage
