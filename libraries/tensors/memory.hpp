#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

/// By what another process maps a chunk.
struct Handle {
  int descriptor = -1;  ///< the chunk keeps it; -1: none
  std::string bytes;    ///< to send beside it
};

/// A 64-bit word in host memory that several processes map: by what lies around it in this one.
struct WordPlace {
  std::byte* part = nullptr;  ///< whole pages
  std::size_t part_bytes = 0, offset = 0;
};

/// Memory that other processes map. It lives as long as one of them, or its maker, holds it.
class Chunk {
 public:
  virtual ~Chunk() = default;
  virtual std::size_t bytes() const = 0;
  /// To send to another process, which maps the chunk by it.
  virtual Handle handle() const = 0;
  /// Where this process, its maker, may use it.
  virtual std::byte* data() = 0;
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
  virtual std::unique_ptr<Mapping> map(Descriptor descriptor, std::string_view handle, std::size_t bytes) = 0;
  /// Between this memory and the host's, either way; returns when it is done.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Waits for all that this process has asked of the memory's device, before memory is let go. False where that can't
  /// be known: while a stream is being captured, or in a context that is broken.
  virtual bool settle() noexcept { return true; }
  /// In the order of a stream of the device (a cudaStream_t): writes a word once all before it is done; goes on once a
  /// word is `least` or more. Throws BadInput where the memory's device has no streams.
  virtual void write_word(void* stream, const WordPlace&, std::uint64_t value);
  virtual void await_word(void* stream, const WordPlace&, std::uint64_t least);
};

/// Host memory: sealed memfds, which nobody can cut short under those who map them.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> memfd_memory();
/// The ways to share a GPU's memory: `vmm` (virtual memory management, a descriptor a chunk), `pool` (an exported
/// stream-ordered pool), `legacy` (handles of cudaMalloc blocks). None in a build without CUDA.
FEEDRATE_EXPORT std::vector<std::string> gpu_ways();
/// A GPU's memory, shared in one of these ways. `device`: `cuda`, `cuda:N`, or a GPU's UUID. `user`: the GPU that uses
/// what this process maps, if not the same. Throws BadInput naming `--device` or `--share`.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> gpu_memory(const std::string& way, const std::string& device,
                                                        const std::string& user = "");
/// The same kind of memory as a daemon's, for its clients. Throws Failure for one that this build does not know.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> memory_of_kind(const std::string& kind);

}  // namespace feedrate::tensors
