#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "common/error.hpp"
#include "variants/storage/copies.hpp"
#include "variants/storage/files.hpp"
#include "variants/storage/slots.hpp"

namespace feedrate::storage {
namespace {

struct MmapOptions {
  std::size_t chunk = std::size_t{64} << 20;
};
const Axes<MmapOptions>& own_axes_of_mmap() {
  static const auto kAxes =
      Axes<MmapOptions>().number("chunk", &MmapOptions::chunk, {4096, std::uint64_t{1} << 40, 4096},
                                 "bytes of a file that are registered with the GPU at once");
  return kAxes;
}

/// A file mapped for reading, whose chunks are registered with the device when a request first needs them.
class MappedFile {
 public:
  MappedFile(const File& file, int descriptor, std::size_t chunk) : file_(file), chunk_(chunk) {
    if (file.bytes == 0) throw Failure(fmt::format("{} is empty and cannot be mapped", file.path));
    void* const data = ::mmap(nullptr, file.bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) throw Failure(fmt::format("cannot map {}: {}", file.path, std::strerror(errno)));
    data_ = {static_cast<std::byte*>(data), file.bytes, [n = file.bytes](std::byte* p) { ::munmap(p, n); }};
    chunks_.resize((file.bytes + chunk - 1) / chunk);
  }
  /// Appends the copies of a request's bytes, one per chunk; returns the number of bytes that the file has.
  std::size_t add_copies(Device& device, const Request& request, std::vector<Copy>& copies) {
    const std::size_t end = std::min<std::uint64_t>(file_.bytes, request.offset + request.bytes);
    std::byte* to = request.device;
    for (std::size_t at = request.offset; at < end;) {
      const std::size_t index = at / chunk_, bytes = std::min(end, (index + 1) * chunk_) - at;
      if (!chunks_[index]) register_chunk(device, index);
      copies.push_back({to, data_.data() + at, bytes});
      at += bytes;
      to += bytes;
    }
    return static_cast<std::size_t>(to - request.device);
  }

 private:
  void register_chunk(Device& device, std::size_t index) {
    const std::size_t begin = index * chunk_, page = 4096;
    const std::size_t bytes = (std::min(chunk_, file_.bytes - begin) + page - 1) / page * page;
    try {
      chunks_[index] = device.pin(data_.data() + begin, bytes, Access::read_only);
    } catch (const Failure& failure) {
      throw Failure(fmt::format("{}: the GPU cannot use the mapped file: {}", file_.path, failure.what()));
    }
  }

  File file_;
  std::size_t chunk_;
  Buffer data_;
  std::vector<std::optional<Buffer>> chunks_;  // destroyed before the mapping
};

/// The file's pages are registered with the device, which copies them from the page cache. No CPU copies them.
class Mmap final : public Engine {
 public:
  explicit Mmap(const EngineConfig& config)
      : device_(config.device),
        files_(config),
        slots_(config.depth),
        copies_(config.device, 2, Direction::to_device, false) {
    const std::size_t chunk = own_axes_of_mmap().of(config.own).chunk;
    for (unsigned i = 0; i < config.files.size(); ++i) {
      mapped_.emplace_back(config.files[i], files_.descriptor(i, 0, 0), chunk);
    }
  }
  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request);
    parts_.clear();
    slots_.bytes(slot) = mapped_.at(request.file).add_copies(device_, request, parts_);
    if (parts_.empty()) {
      slots_.end(slot);
    } else {
      copies_.add(parts_, slot);
    }
    return true;
  }
  void flush() override { copies_.start(); }
  std::size_t poll(std::span<Completion> ended) override {
    copies_.poll([&](std::size_t slot) { slots_.end(slot); });
    return slots_.poll(ended);
  }
  std::map<std::string, std::string> path() const override { return {{"mode", "registered page cache"}}; }

 private:
  Device& device_;
  OpenFiles files_;
  std::vector<MappedFile> mapped_;
  Slots slots_;
  std::vector<Copy> parts_;
  Copies copies_;  // destroyed first: it waits for the copies
};

const EngineRegistration registered(
    "mmap", {.description = "mapped files registered with the GPU, which copies the page cache itself",
             .axes = own_axes_of_mmap().list(),
             .why_unsupported = [](const EnginePoint& point) -> std::string {
               if (point.operation == Operation::write) return "engine mmap only reads";
               return point.direct ? "engine mmap reads through the page cache; use --direct no" : "";
             },
             .make = make_engine<Mmap>});

}  // namespace
}  // namespace feedrate::storage
