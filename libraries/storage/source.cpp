#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <mutex>

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
constexpr std::size_t kMostMemory = std::size_t{16} << 30;  // of the blocks in flight

/// Opens a file or a block device. Throws BadInput if the path is neither, Failure if it cannot be opened.
Descriptor opened(const std::string& path, int flags) {
  if (path.find('\0') != path.npos) throw BadInput("path", path.c_str(), "a path without a byte 0");
  struct stat state {};
  const bool found = ::stat(path.c_str(), &state) == 0;
  // Opening a pipe would wait for its other end.
  if (found && !S_ISREG(state.st_mode) && !S_ISBLK(state.st_mode))
    throw BadInput("path", path, "a file or a block device");
  return {path, flags};
}

std::uint64_t size_of(const Descriptor& file, const std::string& path) {
  struct stat state {};
  std::uint64_t bytes = 0;
  if (::fstat(file.get(), &state) == 0) {
    if (S_ISREG(state.st_mode)) return static_cast<std::uint64_t>(state.st_size);
    if (S_ISBLK(state.st_mode) && ::ioctl(file.get(), BLKGETSIZE64, &bytes) == 0) return bytes;
  }
  throw Failure(fmt::format("cannot read the size of {}: {}", path, std::strerror(errno)));
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
  if (options.gap > kMostBlock) {
    throw BadInput("gap", std::to_string(options.gap), fmt::format("at most {}", kMostBlock));
  }
  if (options.depth * options.block > kMostMemory) {
    throw BadInput("depth", std::to_string(options.depth),
                   fmt::format("at most {} with blocks of {}, because each needs pinned memory",
                               kMostMemory / options.block, options.block));
  }
  if (options.engine != "auto" && options.engine != "threads" && options.engine != "io_uring") {
    throw BadInput("engine", options.engine, "auto, threads, io_uring");
  }
}

}  // namespace

bool Pending::ready() const { return job_->done(); }
void Pending::wait() const {
  job_->wait([](auto& changed, auto& lock, const auto& done) { changed.wait(lock, done); });
}
bool Pending::wait_for(std::chrono::nanoseconds limit) const {
  limit = std::min(limit, std::chrono::nanoseconds(std::chrono::hours(24 * 365)));  // the clock must not overflow
  return job_->wait([&](auto& changed, auto& lock, const auto& done) { changed.wait_for(lock, limit, done); });
}

struct Source::State {
  State(std::vector<std::string> given_paths, const SourceOptions& given)
      : options(given),
        paths(std::move(given_paths)),
        descriptors(open_all(paths, options)),
        files(files_of(descriptors, paths)),
        begins(begins_of(files)),
        kinds(begins.back()) {
    choose_engine();
    try {
      // In another thread, because opening a GPU makes it the current one of the thread.
      device = std::async(std::launch::async, [&] { return open_device(options.device, options.gpu); }).get();
    } catch (const BadInput& bad) {
      throw bad.from("device");
    }
    mover = std::make_unique<Mover>(
        *device, [this](Operation operation) { return make(operation); },
        [this](const Job& job, const Run& run, const Completion& completion) {
          return failure_of(job, run, completion);
        });
  }

  static std::vector<Descriptor> open_all(const std::vector<std::string>& paths, const SourceOptions& options) {
    const int flags = options.writable ? O_RDWR : O_RDONLY;
    std::vector<Descriptor> all;
    for (const std::string& path : paths) {
      all.push_back(opened(path, flags));
      if (options.direct) const Descriptor possible(path, flags | O_DIRECT);
    }
    return all;
  }
  /// The files by their open descriptors, so that the engines open the same files even if a path leads elsewhere by
  /// then.
  static std::vector<File> files_of(const std::vector<Descriptor>& descriptors, const std::vector<std::string>& paths) {
    std::vector<File> files;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      files.push_back({fmt::format("/proc/self/fd/{}", descriptors[i].get()), size_of(descriptors[i], paths[i])});
    }
    return files;
  }
  static std::vector<std::uint64_t> begins_of(const std::vector<File>& files) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    std::vector<std::uint64_t> begins{0};
    for (const File& file : files) {
      if (file.bytes > kMost - begins.back()) throw BadInput("paths", "files of more than 2^62 bytes", "smaller files");
      begins.push_back(begins.back() + file.bytes);
    }
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
    const std::lock_guard lock(engine_mutex);
    if (engine == "io_uring") {
      try {
        return std::make_unique<UringEngine>(config, UringOptions{});
      } catch (const Failure& failure) {
        if (options.engine != "auto") throw;
        engine = "threads";
        reason = failure.what();
      }
    }
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
                        piece.bytes - (missing - piece.at), run.offset + missing, paths[run.file], why),
            completion.error};
  }

  /// `records`: number of the records, for the statistics.
  Pending start(Operation operation, std::vector<Extent> extents, std::uint64_t records, const Order& order) {
    const bool reads = operation == Operation::read;
    if (!reads && !options.writable) throw BadInput("writable", "false", "true, to write to the source");
    for (const Extent& extent : extents) {
      if (extent.place == nullptr && extent.bytes != 0)
        throw BadInput("place", "null", "an address in the device's memory");
    }
    const PlanRules rules{options.block, reads ? options.gap : 0, reads && options.direct ? kDirectAlignment : 1};
    auto job = std::make_shared<Job>(operation, plan_of(std::move(extents), begins, rules),
                                     order.streamed ? gate_on(order) : nullptr, records);
    mover->start(job);
    return Pending(std::move(job));
  }
  std::unique_ptr<Gate> gate_on(const Order& order) {
    const std::lock_guard lock(gates_mutex);
    if (!gates) gates = make_gates(*device);
    return gates->on(order.stream, order.holds);
  }
  static std::byte* bytes_of(const void* place) { return static_cast<std::byte*>(const_cast<void*>(place)); }
  std::vector<Extent> batch(std::span<const Record> records) {
    std::vector<Extent> extents;
    extents.reserve(records.size());
    for (const Record& record : records) {
      extents.push_back(kinds.extent(record.kind, record.index, 1));
      extents.back().place = bytes_of(record.place);
    }
    return extents;
  }
  std::vector<Extent> records_at(unsigned kind, std::uint64_t first, std::uint64_t count, const void* place) {
    Extent extent = kinds.extent(kind, first, count);
    extent.place = bytes_of(place);
    return {extent};
  }
  std::vector<Extent> bytes_at(std::uint64_t first, std::uint64_t bytes, const void* place) const {
    if (first > begins.back() || bytes > begins.back() - first) {
      throw BadInput("bytes", fmt::format("{} from {}", bytes, first),
                     fmt::format("0 to {}, the bytes of the source", begins.back()));
    }
    return {{first, bytes, bytes_of(place), Kinds::kNone}};
  }

  SourceOptions options;
  std::vector<std::string> paths;
  std::vector<Descriptor> descriptors;  // keep the files
  std::vector<File> files;
  std::vector<std::uint64_t> begins;  // of each file in the source, and the end
  Kinds kinds;
  mutable std::mutex engine_mutex;
  std::string engine, reason;
  std::unique_ptr<Device> device;
  std::mutex gates_mutex;
  std::unique_ptr<Gates> gates;
  std::unique_ptr<Mover> mover;  // destroyed first
};

Source::Source(std::vector<std::string> paths, const SourceOptions& options) {
  check(options, paths);
  state_ = std::make_unique<State>(std::move(paths), options);
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
std::string Source::engine() const {
  const std::lock_guard lock(state_->engine_mutex);
  return fmt::format("{}: {}", state_->engine, state_->reason);
}

unsigned Source::add_kind(Kind kind) { return state_->kinds.add(std::move(kind)); }
unsigned Source::find(std::string_view name) const { return state_->kinds.find(name); }
std::uint64_t Source::records(unsigned kind) const { return state_->kinds.records(kind); }
std::uint64_t Source::bytes_of(unsigned kind, std::uint64_t first, std::uint64_t count) const {
  return state_->kinds.extent(kind, first, count).bytes;
}

void Source::read(unsigned kind, std::uint64_t first, std::uint64_t count, void* place) {
  read_async(kind, first, count, place).wait();
}
Pending Source::read_async(unsigned kind, std::uint64_t first, std::uint64_t count, void* place, const Order& order) {
  return state_->start(Operation::read, state_->records_at(kind, first, count, place), count, order);
}
void Source::read_batch(std::span<const Record> records) { read_batch_async(records).wait(); }
Pending Source::read_batch_async(std::span<const Record> records, const Order& order) {
  return state_->start(Operation::read, state_->batch(records), records.size(), order);
}
void Source::read_bytes(std::uint64_t start, std::uint64_t bytes, void* place) {
  read_bytes_async(start, bytes, place).wait();
}
Pending Source::read_bytes_async(std::uint64_t start, std::uint64_t bytes, void* place, const Order& order) {
  return state_->start(Operation::read, state_->bytes_at(start, bytes, place), 0, order);
}

void Source::write(unsigned kind, std::uint64_t first, std::uint64_t count, const void* place) {
  write_async(kind, first, count, place).wait();
}
Pending Source::write_async(unsigned kind, std::uint64_t first, std::uint64_t count, const void* place,
                            const Order& order) {
  return state_->start(Operation::write, state_->records_at(kind, first, count, place), count, order);
}
void Source::write_bytes(std::uint64_t start, std::uint64_t bytes, const void* place) {
  write_bytes_async(start, bytes, place).wait();
}
Pending Source::write_bytes_async(std::uint64_t start, std::uint64_t bytes, const void* place, const Order& order) {
  return state_->start(Operation::write, state_->bytes_at(start, bytes, place), 0, order);
}
void Source::sync() {
  for (std::size_t i = 0; i < state_->files.size(); ++i) {
    if (::fdatasync(state_->descriptors[i].get()) == 0) continue;
    const int error = errno;
    throw StorageError(fmt::format("cannot sync {}: {}", state_->paths[i], std::strerror(error)), error);
  }
}

Statistics Source::statistics() const {
  const MoverCounts counts = state_->mover->counts();
  return {counts.records, counts.record_bytes, counts.requests, counts.request_bytes, counts.errors};
}

}  // namespace feedrate::storage
