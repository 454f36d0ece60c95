#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "common/device/device.hpp"
#include "common/threads/threads.hpp"
#include "feedrate/storage.hpp"
#include "libraries/storage/files.hpp"
#include "libraries/storage/kinds.hpp"
#include "libraries/storage/mover.hpp"
#include "libraries/storage/reader_threads.hpp"
#include "libraries/storage/uring_engine.hpp"

namespace feedrate::storage {
namespace {

constexpr std::size_t kLeastBlock = kDirectAlignment, kMostBlock = std::size_t{256} << 20;
constexpr unsigned kMostDepth = 4096;

/// The size of a file or block device. Throws BadInput if the path is neither, Failure if it cannot be opened.
std::uint64_t size_of(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  struct stat state {};
  if (::fstat(file.get(), &state) != 0)
    throw Failure(fmt::format("cannot read the size of {}: {}", path, std::strerror(errno)));
  if (S_ISREG(state.st_mode)) return static_cast<std::uint64_t>(state.st_size);
  std::uint64_t bytes = 0;
  if (S_ISBLK(state.st_mode) && ::ioctl(file.get(), BLKGETSIZE64, &bytes) == 0) return bytes;
  throw BadInput("path", path, "a file or a block device");
}

void check(const SourceOptions& options, const std::vector<std::string>& paths) {
  if (paths.empty()) throw BadInput("paths", "", "at least one file or block device");
  if (options.block < kLeastBlock || options.block > kMostBlock || options.block % kDirectAlignment != 0) {
    throw BadInput("block", std::to_string(options.block),
                   fmt::format("a multiple of {} up to {}", kDirectAlignment, kMostBlock));
  }
  if (options.depth == 0 || options.depth > kMostDepth) {
    throw BadInput("depth", std::to_string(options.depth), fmt::format("1 to {}", kMostDepth));
  }
  if (options.engine != "auto" && options.engine != "threads" && options.engine != "io_uring") {
    throw BadInput("engine", options.engine, "auto, threads, io_uring");
  }
}

}  // namespace

struct Pending::State {
  std::shared_ptr<Job> job;
};

bool Pending::ready() const { return state_->job->done(); }
void Pending::wait() const {
  state_->job->wait([](auto& changed, auto& lock, const auto& done) { changed.wait(lock, done); });
}
bool Pending::wait_for(std::chrono::nanoseconds limit) const {
  return state_->job->wait([&](auto& changed, auto& lock, const auto& done) { changed.wait_for(lock, limit, done); });
}

struct Source::State {
  State(const std::vector<std::string>& paths, const SourceOptions& given)
      : options(given), files(opened(paths)), begins(begins_of(files)), kinds(begins.back()) {
    for (const File& file : files) descriptors.emplace_back(file.path, options.writable ? O_RDWR : O_RDONLY);
    choose_engine();
    device = open_device(options.device, options.gpu);
    mover = std::make_unique<Mover>(
        *device, [this](Operation operation) { return make(operation); },
        [this](const Job& job, const Run& run, const Completion& completion) {
          return failure_of(job, run, completion);
        });
  }

  static std::vector<File> opened(const std::vector<std::string>& paths) {
    std::vector<File> files;
    for (const std::string& path : paths) files.push_back({path, size_of(path)});
    return files;
  }
  static std::vector<std::uint64_t> begins_of(const std::vector<File>& files) {
    std::vector<std::uint64_t> begins{0};
    for (const File& file : files) begins.push_back(begins.back() + file.bytes);
    return begins;
  }
  void choose_engine() {
    const std::string why_not = Uring::unavailable();
    if (options.engine == "io_uring" && !why_not.empty()) throw BadInput("engine", "io_uring", "threads; " + why_not);
    if (options.engine != "auto") {
      engine = options.engine;
      reason = "as asked";
    } else if (options.direct && why_not.empty()) {
      engine = "io_uring";
      reason = "its requests need no threads, and the page cache is bypassed";
    } else {
      engine = "threads";
      reason = options.direct ? why_not : "cached blocks are copied on several cores";
    }
  }
  std::unique_ptr<Engine> make(Operation operation) {
    const EngineConfig config{.files = files,
                              .device = *device,
                              .operation = operation,
                              .direct = options.direct,
                              .block = options.block,
                              .depth = options.depth,
                              .scatters = true};
    if (engine == "io_uring") return std::make_unique<UringEngine>(config, UringOptions{});
    return std::make_unique<ReaderThreads>(
        config, ReaderThreadsOptions{.readers = std::min(8u, std::max(2u, available_cores()))});
  }

  /// Says what could not be moved: the first byte of a piece that did not arrive.
  JobFailure failure_of(const Job& job, const Run& run, const Completion& completion) const {
    const std::size_t arrived = completion.error != 0 ? 0 : completion.bytes;
    std::size_t place = run.first;
    while (job.plan().pieces[place].at + job.plan().pieces[place].bytes <= arrived) ++place;
    const Piece& piece = job.plan().pieces[place];
    const std::uint64_t missing = std::max<std::uint64_t>(piece.at, arrived);
    const std::string record =
        kinds.text(job.plan().extents[job.plan().of[place]], begins[run.file] + run.offset + missing);
    const char* what = job.operation() == Operation::read ? "read" : "write";
    const std::string why = completion.error != 0
                                ? std::strerror(completion.error)
                                : std::string("the file ends there; it was longer when it was opened");
    return {fmt::format("cannot {} {}{}{} bytes at offset {} of {}: {}", what, record, record.empty() ? "" : ": ",
                        piece.bytes - (missing - piece.at), run.offset + missing, files[run.file].path, why),
            completion.error};
  }

  /// `stream`: the stream in whose order the job runs; none: it begins at once.
  Pending start(Operation operation, std::vector<Extent> extents, std::optional<void*> stream = {}) {
    const bool reads = operation == Operation::read;
    if (!reads && !options.writable) throw BadInput("writable", "false", "true, to write to the source");
    std::uint64_t bytes = 0;
    for (const Extent& extent : extents) {
      bytes += extent.bytes;
      if (extent.place == nullptr && extent.bytes != 0)
        throw BadInput("place", "null", "an address in the device's memory");
    }
    moved_bytes += bytes;
    const PlanRules rules{options.block, reads ? options.gap : 0, reads && options.direct ? kDirectAlignment : 1};
    auto job = std::make_shared<Job>(operation, plan_of(std::move(extents), begins, rules),
                                     stream ? gate_on(*stream) : nullptr);
    mover->start(job);
    return Pending(std::make_shared<Pending::State>(Pending::State{std::move(job)}));
  }
  std::unique_ptr<Gate> gate_on(void* stream) {
    const std::lock_guard lock(gates_mutex);
    if (!gates) gates = make_gates(*device);
    return gates->on(stream);
  }
  std::vector<Extent> batch(std::span<const Record> records) {
    std::vector<Extent> extents;
    extents.reserve(records.size());
    for (const Record& record : records) {
      extents.push_back(kinds.extent(record.kind, record.index, 1));
      extents.back().place = static_cast<std::byte*>(record.place);
    }
    moved_records += records.size();
    return extents;
  }
  std::vector<Extent> records_at(unsigned kind, std::uint64_t first, std::uint64_t count, const void* place) {
    Extent extent = kinds.extent(kind, first, count);
    extent.place = static_cast<std::byte*>(const_cast<void*>(place));
    moved_records += count;
    return {extent};
  }
  std::vector<Extent> bytes_at(std::uint64_t first, std::uint64_t bytes, const void* place) const {
    if (first > begins.back() || bytes > begins.back() - first) {
      throw BadInput("bytes", fmt::format("{} from {}", bytes, first),
                     fmt::format("0 to {}, the bytes of the source", begins.back()));
    }
    return {{first, bytes, static_cast<std::byte*>(const_cast<void*>(place)), Kinds::kNone, 0}};
  }

  SourceOptions options;
  std::vector<File> files;
  std::vector<std::uint64_t> begins;  // of each file in the source, and the end
  Kinds kinds;
  std::vector<Descriptor> descriptors;
  std::string engine, reason;
  std::atomic<std::uint64_t> moved_records = 0, moved_bytes = 0;
  std::unique_ptr<Device> device;
  std::mutex gates_mutex;
  std::unique_ptr<Gates> gates;
  std::unique_ptr<Mover> mover;  // destroyed first
};

Source::Source(std::vector<std::string> paths, const SourceOptions& options) {
  check(options, paths);
  state_ = std::make_unique<State>(paths, options);
}
Source::~Source() = default;
Source::Source(Source&&) noexcept = default;
Source& Source::operator=(Source&&) noexcept = default;

std::uint64_t Source::bytes() const { return state_->begins.back(); }
std::uint64_t Source::begin_of(unsigned file) const {
  if (file >= state_->files.size()) {
    throw BadInput("file", std::to_string(file), fmt::format("0 to {}", state_->files.size() - 1));
  }
  return state_->begins[file];
}
std::string Source::engine() const { return fmt::format("{}: {}", state_->engine, state_->reason); }

unsigned Source::add_kind(Kind kind) { return state_->kinds.add(std::move(kind)); }
unsigned Source::find(std::string_view name) const { return state_->kinds.find(name); }
std::uint64_t Source::records(unsigned kind) const { return state_->kinds.records(kind); }
std::uint64_t Source::bytes_of(unsigned kind, std::uint64_t first, std::uint64_t count) const {
  return state_->kinds.extent(kind, first, count).bytes;
}

void Source::read(unsigned kind, std::uint64_t first, std::uint64_t count, void* place) {
  read_async(kind, first, count, place).wait();
}
Pending Source::read_async(unsigned kind, std::uint64_t first, std::uint64_t count, void* place) {
  return state_->start(Operation::read, state_->records_at(kind, first, count, place));
}
void Source::read_batch(std::span<const Record> records) { read_batch_async(records).wait(); }
Pending Source::read_batch_async(std::span<const Record> records) {
  return state_->start(Operation::read, state_->batch(records));
}
void Source::read_bytes(std::uint64_t start, std::uint64_t bytes, void* place) {
  read_bytes_async(start, bytes, place).wait();
}
Pending Source::read_bytes_async(std::uint64_t start, std::uint64_t bytes, void* place) {
  return state_->start(Operation::read, state_->bytes_at(start, bytes, place));
}

Pending Source::read_on(void* stream, unsigned kind, std::uint64_t first, std::uint64_t count, void* place) {
  return state_->start(Operation::read, state_->records_at(kind, first, count, place), stream);
}
Pending Source::read_batch_on(void* stream, std::span<const Record> records) {
  return state_->start(Operation::read, state_->batch(records), stream);
}
Pending Source::read_bytes_on(void* stream, std::uint64_t start, std::uint64_t bytes, void* place) {
  return state_->start(Operation::read, state_->bytes_at(start, bytes, place), stream);
}

void Source::write(unsigned kind, std::uint64_t first, std::uint64_t count, const void* place) {
  write_async(kind, first, count, place).wait();
}
Pending Source::write_async(unsigned kind, std::uint64_t first, std::uint64_t count, const void* place) {
  return state_->start(Operation::write, state_->records_at(kind, first, count, place));
}
void Source::write_bytes(std::uint64_t start, std::uint64_t bytes, const void* place) {
  write_bytes_async(start, bytes, place).wait();
}
Pending Source::write_bytes_async(std::uint64_t start, std::uint64_t bytes, const void* place) {
  return state_->start(Operation::write, state_->bytes_at(start, bytes, place));
}
Pending Source::write_on(void* stream, unsigned kind, std::uint64_t first, std::uint64_t count, const void* place) {
  return state_->start(Operation::write, state_->records_at(kind, first, count, place), stream);
}
Pending Source::write_bytes_on(void* stream, std::uint64_t start, std::uint64_t bytes, const void* place) {
  return state_->start(Operation::write, state_->bytes_at(start, bytes, place), stream);
}
void Source::sync() {
  for (std::size_t i = 0; i < state_->files.size(); ++i) {
    if (::fdatasync(state_->descriptors[i].get()) == 0) continue;
    const int error = errno;
    throw StorageError(fmt::format("cannot sync {}: {}", state_->files[i].path, std::strerror(error)), error);
  }
}

Statistics Source::statistics() const {
  const MoverCounts counts = state_->mover->counts();
  return {state_->moved_records, state_->moved_bytes, counts.requests, counts.request_bytes, counts.errors};
}

}  // namespace feedrate::storage
