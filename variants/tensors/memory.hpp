#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "common/export.hpp"

namespace feedrate::tensors {

/// A file descriptor that is closed with this.
class FEEDRATE_EXPORT Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

/// Memory that other processes map by a descriptor. It lives as long as one of them, or its maker, holds it.
class Chunk {
 public:
  virtual ~Chunk() = default;
  virtual std::size_t bytes() const = 0;
  /// To send to another process; this process keeps it.
  virtual int descriptor() const = 0;
  /// Zeroes a part, before anybody may see it. Throws Failure.
  virtual void zero(std::size_t offset, std::size_t bytes) = 0;
};

/// Another process's chunk in this process's address space, until it is destroyed.
class Mapping {
 public:
  virtual ~Mapping() = default;
  virtual void* data() const = 0;
};

/// A kind of memory that can be shared: the daemon makes chunks of it, clients map them.
class ChunkMemory {
 public:
  virtual ~ChunkMemory() = default;
  /// As clients are told, who make the same by it: memory_of_kind().
  virtual std::string kind() const = 0;
  /// -1 where it is the host's.
  virtual int cuda_index() const { return -1; }
  /// A chunk's size is a multiple of this.
  virtual std::size_t granularity() const = 0;
  /// A new chunk of zeros. Throws OutOfMemory where the system has no more, Failure for all else.
  virtual std::unique_ptr<Chunk> make(std::size_t bytes) = 0;
  /// Maps a chunk that another process made. Throws Failure.
  virtual std::unique_ptr<Mapping> map(Descriptor descriptor, std::size_t bytes) = 0;
  /// Between this memory and the host's, either way; returns when it is done.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Waits for all that this process has asked of the memory's device, before memory is let go.
  virtual void settle() noexcept {}
};

/// Host memory: sealed memfds, which nobody can cut short under those who map them.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> memfd_memory();
/// A GPU's memory by CUDA's virtual memory management, exported as file descriptors. `device`: `cuda`, `cuda:N`, or a
/// GPU's UUID. Throws BadInput naming `--device` where there is no such GPU.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> vmm_memory(const std::string& device);
inline constexpr std::string_view kVmmKind = "vmm:";  ///< then the GPU's UUID
/// The same kind of memory as a daemon's, for its clients. Throws Failure for one that this build does not know.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> memory_of_kind(const std::string& kind);

}  // namespace feedrate::tensors
