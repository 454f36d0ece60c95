#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "common/error.hpp"
#include "libraries/tensors/errors.hpp"
#include "libraries/tensors/memory.hpp"

namespace feedrate::tensors {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;  // the same as on GPUs, so that host memory behaves alike

class MemfdMapping final : public Mapping {
 public:
  MemfdMapping(const Descriptor& descriptor, std::size_t bytes) : bytes_(bytes) {
    struct stat found {};
    // Access beyond the end of the file would kill this process.
    if (fstat(descriptor.get(), &found) != 0 || static_cast<std::size_t>(found.st_size) < bytes) {
      throw Failure(fmt::format("the file of a chunk of {} bytes has only {}", bytes, found.st_size));
    }
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
    if (data_ == MAP_FAILED) throw Failure(fmt::format("mmap of {} bytes: {}", bytes, std::strerror(errno)));
  }
  ~MemfdMapping() override { munmap(data_, bytes_); }
  void* data() const override { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

class MemfdChunk final : public Chunk {
 public:
  explicit MemfdChunk(std::size_t bytes) : bytes_(bytes) {
    descriptor_ = Descriptor(memfd_create("feedrate-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!descriptor_) throw Failure(fmt::format("memfd_create: {}", std::strerror(errno)));
    if (ftruncate(descriptor_.get(), static_cast<off_t>(bytes)) != 0) {
      throw OutOfMemory(fmt::format("a memfd of {} bytes: {}", bytes, std::strerror(errno)));
    }
    if (fcntl(descriptor_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      throw Failure(fmt::format("F_ADD_SEALS: {}", std::strerror(errno)));
    }
  }
  std::size_t bytes() const override { return bytes_; }
  Handle handle() const override { return {descriptor_.get(), {}}; }
  /// Maps the chunk on the first call: a daemon never reads its tensors.
  std::byte* data() override {
    if (!mapping_) mapping_.emplace(descriptor_, bytes_);
    return static_cast<std::byte*>(mapping_->data());
  }
  void zero(std::size_t offset, std::size_t bytes) override {
    // Complete pages are returned to the system and then read as zeros; partial pages at the ends are zeroed in place.
    if (fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(bytes)) != 0) {
      throw Failure(fmt::format("punching a hole of {} bytes in a memfd: {}", bytes, std::strerror(errno)));
    }
  }

 private:
  Descriptor descriptor_;
  std::size_t bytes_;
  std::optional<MemfdMapping> mapping_;
};

class MemfdMemory final : public ChunkMemory {
 public:
  std::string kind() const override { return "memfd"; }
  std::size_t granularity() const override { return kGranularity; }
  std::unique_ptr<Chunk> make(std::size_t bytes) override { return std::make_unique<MemfdChunk>(bytes); }
  std::unique_ptr<Mapping> map(Descriptor descriptor, std::string_view /*handle*/, std::size_t bytes) override {
    return std::make_unique<MemfdMapping>(descriptor, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

std::unique_ptr<ChunkMemory> memfd_memory() { return std::make_unique<MemfdMemory>(); }

std::unique_ptr<ChunkMemory> memory_of_kind(const std::string& kind) {
  if (kind == MemfdMemory().kind()) return memfd_memory();
  if (const auto colon = kind.find(':'); colon != std::string::npos) {
    return gpu_memory(kind.substr(0, colon), kind.substr(colon + 1));
  }
  throw Failure(fmt::format("this build cannot map the store's kind of memory: {}", kind));
}

void ChunkMemory::write_word(void*, const WordPlace&, std::uint64_t) {
  throw BadInput("stream", "of a GPU", "none: the tensor is in host memory");
}
void ChunkMemory::await_word(void*, const WordPlace&, std::uint64_t) {
  throw BadInput("stream", "of a GPU", "none: the tensor is in host memory");
}

}  // namespace feedrate::tensors
