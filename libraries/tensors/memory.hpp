#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/export.hpp"

namespace feedrate::tensors {

/// Owns a file descriptor and closes it.
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

/// The handle with which another process maps a chunk.
struct Handle {
  int descriptor = -1;  ///< owned by the chunk; -1: none
  std::string bytes;    ///< to be sent with the descriptor
};

/// The place of a 64-bit word in host memory that several processes map: its offset in a mapped part.
struct WordPlace {
  std::byte* part = nullptr;  ///< complete pages
  std::size_t part_bytes = 0, offset = 0;
};

/// Memory that other processes can map. It exists as long as its creator or another process holds it.
class Chunk {
 public:
  Chunk() = default;
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  virtual ~Chunk() = default;
  virtual std::size_t bytes() const = 0;
  /// The handle to send to another process, which maps the chunk with it.
  virtual Handle handle() const = 0;
  /// The chunk's address in the process that created it.
  virtual std::byte* data() = 0;
  /// Zeroes a range, before any client can see it. Throws Failure.
  virtual void zero(std::size_t offset, std::size_t bytes) = 0;
};

/// Maps another process's chunk into this process's address space; the destructor unmaps it.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  virtual ~Mapping() = default;
  virtual void* data() const = 0;
};

/// A kind of memory that can be shared: the daemon creates chunks of it, and clients map them.
class ChunkMemory {
 public:
  virtual ~ChunkMemory() = default;
  /// The name of this kind. Clients pass it to memory_of_kind() to get the same kind.
  virtual std::string kind() const = 0;
  /// CUDA index of the GPU that owns the memory; -1 for host memory.
  virtual int cuda_index() const { return -1; }
  /// Chunk sizes are multiples of this.
  virtual std::size_t granularity() const = 0;
  /// Creates a zeroed chunk. Throws OutOfMemory if the system has no more memory, Failure for any other error.
  virtual std::unique_ptr<Chunk> make(std::size_t bytes) = 0;
  /// Maps a chunk that another process created. Throws Failure.
  virtual std::unique_ptr<Mapping> map(Descriptor descriptor, std::string_view handle, std::size_t bytes) = 0;
  /// Copies between this memory and host memory, in either direction; returns when the copy is complete.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// Waits for all work that this process has queued on the memory's device, before memory is released. False if that
  /// is not possible: while a stream is being captured, or if the context is broken.
  virtual bool settle() noexcept { return true; }
  /// Both functions work in the order of a stream of the device (a cudaStream_t). write_word() writes a word after all
  /// earlier work; await_word() blocks the stream until a word is `least` or more. Throws BadInput if the memory's
  /// device has no streams.
  virtual void write_word(void* stream, const WordPlace&, std::uint64_t value);
  virtual void await_word(void* stream, const WordPlace&, std::uint64_t least);
};

/// Host memory: sealed memfds, which no process can truncate while others map them.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> memfd_memory();
/// The ways to share a GPU's memory: `vmm` (virtual memory management, one descriptor per chunk), `pool` (an exported
/// stream-ordered pool), `legacy` (handles to cudaMalloc blocks). Empty in a build without CUDA.
FEEDRATE_EXPORT std::vector<std::string> gpu_ways();
/// A GPU's memory, shared in one of these ways. `device`: `cuda`, `cuda:N`, or a GPU's UUID. `user`: the GPU that
/// accesses the chunks that this process maps, if it is a different one. Throws BadInput naming `--device` or
/// `--share`.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> gpu_memory(const std::string& way, const std::string& device,
                                                        const std::string& user = "");
/// The kind of memory that a daemon uses, for its clients. Throws Failure for a kind that this build does not support.
FEEDRATE_EXPORT std::unique_ptr<ChunkMemory> memory_of_kind(const std::string& kind);

}  // namespace feedrate::tensors
