#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "common/error.hpp"
#include "libraries/storage/copies.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/slots.hpp"
#include "variants/storage/engine.hpp"
#include "variants/storage/guarded_mapping.hpp"
#include "variants/storage/mapping_trial.hpp"

namespace feedrate::storage {
namespace {

struct MmapOptions {
  std::size_t chunk = std::size_t{64} << 20;
  std::string mapping = "auto";
};
const Axes<MmapOptions>& own_axes_of_mmap() {
  static const auto kAxes =
      Axes<MmapOptions>()
          .number("chunk", &MmapOptions::chunk, {4096, std::uint64_t{1} << 40, 4096},
                  "bytes of a file that are registered with the GPU at once")
          .word("mapping", &MmapOptions::mapping, {"auto", "registered", "slots"},
                "registered: the GPU copies from the mapping; slots: the CPU copies blocks from the mapping to pinned "
                "memory first; auto = registered, if a trial in another process succeeds");
  return kAxes;
}

/// A mapped file, whose chunks are registered with the device when a request first needs them.
class MappedFile {
 public:
  MappedFile(const File& file, int descriptor, std::size_t chunk)
      : file_(file), descriptor_(descriptor), chunk_(chunk), mapping_(file, descriptor) {
    chunks_.resize((file.bytes + chunk - 1) / chunk);
  }
  /// Number of the request's bytes that the mapping has.
  std::size_t bytes_of(const Request& request) const {
    const std::uint64_t end = std::min<std::uint64_t>(file_.bytes, request.offset + request.bytes);
    return static_cast<std::size_t>(end - std::min(end, request.offset));
  }
  /// Appends the copies of a request's bytes, one per chunk.
  void add_copies(Device& device, const Request& request, std::vector<Copy>& copies) {
    std::byte* to = request.device;
    for (std::size_t at = request.offset, end = at + bytes_of(request); at < end;) {
      const std::size_t index = at / chunk_, bytes = std::min(end, (index + 1) * chunk_) - at;
      if (!chunks_[index]) register_chunk(device, index);
      copies.push_back({to, mapping_.data() + at, bytes});
      at += bytes;
      to += bytes;
    }
  }
  /// Copies a request's bytes to host memory.
  void copy_to(std::byte* host, const Request& request) const {
    const std::size_t bytes = bytes_of(request), skipped = request.offset % kDirectAlignment;
    // Reads the pages with one call instead of a fault for each; errors are found by the copy.
    ::madvise(mapping_.data() + request.offset - skipped, bytes + skipped, MADV_POPULATE_READ);
    std::memcpy(host, mapping_.data() + request.offset, bytes);
  }
  /// How a request ended whose bytes have been copied: pages may have been lost before or while they were copied, and
  /// pages that a GPU has registered remain readable after the file has been truncated.
  int check(const Request& request, std::size_t& bytes) const {
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0) return errno;
    const auto size = S_ISREG(found.st_mode) ? static_cast<std::uint64_t>(found.st_size) : file_.bytes;
    if (size < request.offset + bytes) {
      bytes = static_cast<std::size_t>(size - std::min(size, request.offset));
    }
    return mapping_.intact(request.offset, bytes) ? 0 : EIO;
  }

 private:
  void register_chunk(Device& device, std::size_t index) {
    const std::size_t begin = index * chunk_;
    const std::size_t bytes = rounded_up(std::min<std::size_t>(chunk_, file_.bytes - begin), kDirectAlignment);
    try {
      chunks_[index] = device.pin(mapping_.data() + begin, bytes, Access::read_only);
    } catch (const Failure& failure) {
      throw Failure(fmt::format("{} bytes at offset {} of {}: the GPU cannot use the mapped file: {}", bytes, begin,
                                file_.path, failure.what()));
    }
  }

  File file_;
  int descriptor_;
  std::size_t chunk_;
  GuardedMapping mapping_;
  std::vector<std::optional<Buffer>> chunks_;  // destroyed before the mapping
};

/// The file's pages are registered with the device, which copies them from the page cache; no CPU copies them. If that
/// is not possible, the CPU copies blocks from the mapping to slots of pinned memory.
class Mmap final : public Engine {
 public:
  explicit Mmap(const PointConfig& config)
      : device_(config.device),
        named_(config.files),
        files_(config),
        slots_(config.depth),
        copies_(config.device, 2, Direction::to_device, {.joins = false}) {
    const MmapOptions own = own_axes_of_mmap().of(config.own);
    chunk_ = own.chunk;
    map();
    if (own.mapping == "auto" && device_.kind() != "cpu") {
      why_slots_ = why_not_registered(config.files.front(), files_.descriptor(0, 0, 0));
    }
    if (own.mapping == "slots" || !why_slots_.empty()) staging_.emplace(device_, config.depth, config.block);
  }
  bool submit(const Request& request) override {
    if (slots_.full()) return false;
    const std::size_t slot = slots_.take(request);
    MappedFile& file = mapped_.at(request.file);
    std::size_t& bytes = slots_.bytes(slot);
    bytes = file.bytes_of(request);
    parts_.clear();
    if (!staging_) {
      file.add_copies(device_, request, parts_);
    } else if (bytes != 0) {
      file.copy_to(staging_->slot(slot), request);
      parts_.push_back({request.device, staging_->slot(slot), bytes});
    }
    if (parts_.empty()) {
      slots_.end(slot);
    } else {
      copies_.add(parts_, slot);
    }
    return true;
  }
  void flush() override { copies_.start(); }
  std::size_t poll(std::span<Completion> ended) override {
    copies_.poll([&](std::size_t slot) {
      const Request& request = slots_.at(slot);
      slots_.end(slot, mapped_.at(request.file).check(request, slots_.bytes(slot)));
    });
    return slots_.poll(ended);
  }
  bool reopen() override {
    mapped_.clear();
    files_.reopen();
    map();
    return true;
  }
  std::map<std::string, std::string> path() const override {
    if (!staging_) return {{"mode", "registered page cache"}};
    std::map<std::string, std::string> path{{"mode", "populated mapping, pinned slots"}};
    if (!why_slots_.empty()) path["why_slots"] = why_slots_;
    return path;
  }

 private:
  void map() {
    for (unsigned i = 0; i < named_.size(); ++i) mapped_.emplace_back(named_[i], files_.descriptor(i, 0, 0), chunk_);
  }

  Device& device_;
  std::span<const File> named_;
  std::size_t chunk_ = 0;
  OpenFiles files_;
  std::vector<MappedFile> mapped_;
  std::string why_slots_;  // why the mapping is not registered; empty: as chosen
  std::optional<Staging> staging_;
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
