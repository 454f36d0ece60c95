#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "experiments/harness/load/offer.hpp"
#include "experiments/harness/load/open_load.hpp"
#include "experiments/harness/machine/machine_monitor.hpp"
#include "experiments/harness/measure/session.hpp"
#include "experiments/storage/block_load.hpp"
#include "experiments/storage/file_set.hpp"
#include "experiments/storage/fio.hpp"
#include "experiments/storage/io_counters.hpp"
#include "kernels/storage/content.hpp"
#include "variants/storage/engine.hpp"
#include "variants/storage/files.hpp"

/// The `storage` experiment: how bytes get from a drive or the page cache into device memory, and back
/// (experiments/storage/README.md).
namespace feedrate::storage {
namespace {

constexpr std::size_t kMaxMemory = std::size_t{16} << 30;  // bytes of blocks, for device memory and for pinned memory
constexpr double kPresent = 0.99, kAbsent = 0.01;          // resident shares that count as warm and as cold

struct Options {
  std::string engine = "pread_pinned", device = "auto", access = "sequential", operation = "read", direct = "no",
              residency = "warm", lifetime = "run", folder = "/tmp";
  std::size_t block = std::size_t{1} << 20;
  std::size_t depth = 16;
  unsigned threads = 1, files = 1;
  std::uint64_t size = std::uint64_t{256} << 20;
};

const Axes<Options>& shared_axes() {
  static const auto kAxes =
      Axes<Options>()
          .word(
              "engine", &Options::engine, [] { return Engines::instance().list(); },
              "moves blocks between files and "
              "device memory")
          .word("device", &Options::device, {"auto", "cpu", "cuda"},
                "device that receives and checks the blocks; auto = cuda if there is a GPU")
          .number("block", &Options::block, {4096, 16 << 20, 4096, "block_bytes"}, "bytes per request")
          .number("depth", &Options::depth, {1, 1024}, "requests in flight per thread")
          .number("threads", &Options::threads, {1, 64}, "threads, each with its own engine and part of the blocks")
          .word("access", &Options::access, {"sequential", "random", "strided"},
                "order of the blocks: consecutive, a permutation, or every 16th")
          .word("operation", &Options::operation, {"read", "write"}, "direction")
          .word("direct", &Options::direct, {"no", "yes"}, "bypass the page cache (O_DIRECT)")
          .word("residency", &Options::residency, {"warm", "cold"},
                "whether the page cache holds the files at the start; cold blocks are read only once")
          .word("lifetime", &Options::lifetime, {"run", "pass"},
                "run: files are opened once per repetition; pass: each pass opens the files, reads all blocks and "
                "closes the files, and all of this is timed")
          .number("files", &Options::files, {1, 1024}, "number of files")
          .number("size", &Options::size, {4096, std::uint64_t{1} << 40, 4096, "file_bytes"}, "bytes per file")
          .raw("folder", &Options::folder, "folder in which the files are created; they are removed at the end");
  return kAxes;
}

const EngineEntry& engine_of(const Options& options) { return Engines::instance().get("--engine", options.engine); }
Operation operation_of(const Options& options) {
  return options.operation == "read" ? Operation::read : Operation::write;
}
EnginePoint point_of(const Options& options, const Values& own) {
  return {operation_of(options), options.direct == "yes", options.block, options.depth, options.device, own};
}
FioJob job_of(const Options& options) {
  return {options.block, options.depth, options.threads, options.access == "sequential", options.operation == "read"};
}

/// Results of one thread.
struct Seen {
  LoadResult load;
  Histogram passes;  ///< ns from opening the files until they are closed
  std::uint64_t pass_bytes = 0, requested = 0;
  double pass_seconds = 0;
  std::map<std::string, std::string> path;
};

/// Adds another thread's results; rates are added even if they were measured over different times.
void merge(LoadResult& all, const LoadResult& more) {
  all.began_ns = std::min(all.began_ns, more.began_ns);
  all.ramp_seconds = std::max(all.ramp_seconds, more.ramp_seconds);
  all.ramped = all.ramped && more.ramped;
  const double rate = all.seconds == 0 ? 0 : static_cast<double>(all.received) / all.seconds;
  const double more_rate = more.seconds == 0 ? 0 : static_cast<double>(more.received) / more.seconds;
  all.received += more.received;
  all.seconds = rate + more_rate == 0 ? 0 : static_cast<double>(all.received) / (rate + more_rate);
  all.latency.merge(more.latency);
  all.service.merge(more.service);
  all.without_own_lag.merge(more.without_own_lag);
  all.send_lag.merge(more.send_lag);
  all.own_lag.merge(more.own_lag);
  all.due += more.due;
  all.unsent += more.unsent;
  all.blocked_share = std::max(all.blocked_share, more.blocked_share);
  all.granularity_ns = std::max(all.granularity_ns, more.granularity_ns);
  all.backlog.begin += more.backlog.begin;
  all.backlog.end += more.backlog.end;
  all.backlog.most += more.backlog.most;
  all.backlog.per_second += more.backlog.per_second;
}

class Storage final : public Experiment {
 public:
  explicit Storage(Session& session) : session_(session) {}

  Resolution resolve(const Values& values) override {
    Options options = shared_axes().of(values);
    options.device = session_.device().kind();
    LoadShape shape = load_axes().of(values);
    Resolution made;
    made.values = values_on(engine_of(options).axes, values);
    if (options.direct == "yes" && options.residency == "warm") {
      options.residency = "cold";
      made.unused["residency"] = "with --direct no; O_DIRECT does not use the page cache";
    }
    shared_axes().put(options, made.values);
    load_axes().put(shape, made.values);
    made.impossible = why_impossible(options, shape, made.values);
    return made;
  }

  void connect(std::span<const Resolution> points) override {
    for (const Resolution& point : points) {
      if (point.impossible.empty()) FileSet::require_room(shared_axes().of(point.values).folder, bytes_of(point));
    }
  }

  void add_limits(LimitList& limits, std::span<const Resolution> points) override {
    for (const Resolution& point : points) {
      const Options options = shared_axes().of(point.values);
      if (!point.impossible.empty() || options.direct == "no") continue;
      add_fio_limit(limits, job_of(options), limits.measures() ? files_of(options).files().front() : File{});
    }
  }

  Measurement measure(const Resolution& cell, const Repetition& repetition) override {
    const Options options = shared_axes().of(cell.values);
    const LoadShape shape = load_axes().of(cell.values);
    Measurement measured;
    measured.host_threads = options.threads * (1 + engine_of(options).threads(point_of(options, cell.values)));
    session_.device().use_in_this_thread();
    FileSet& files = files_of(options);
    if (!prepare(files, options, measured)) return measured;
    const std::uint64_t version = operation_of(options) == Operation::read ? files.version() : ++versions_;
    MachineMonitor monitor(session_.gpu());
    const Captured captured(session_);
    const IoCounters before = IoCounters::now();
    std::vector<Seen> seen = run(options, shape, cell.values, files, version, repetition.number);
    const std::uint64_t ended = now_ns();
    if (operation_of(options) == Operation::write) {
      files.sync();
      measured.details["sync_seconds"] = static_cast<double>(now_ns() - ended) / 1e9;
    }
    const IoCounters used = IoCounters::now() - before;
    measured.machine = monitor.stop();
    if (operation_of(options) == Operation::write) verify_written(options, files, seen, version, repetition.number);
    add_results(options, shape, files, seen, used, measured);
    return measured;
  }

 private:
  std::string why_impossible(const Options& options, const LoadShape& shape, const Values& own) const {
    const EngineEntry& engine = engine_of(options);
    if (auto reason = engine.unavailable(); !reason.empty()) return reason;
    const EnginePoint point = point_of(options, own);
    if (engine.why_unsupported) {
      if (auto reason = engine.why_unsupported(point); !reason.empty()) return reason;
    }
    if (auto reason = why_invalid_shape(shape); !reason.empty()) return reason;
    if (options.size % options.block != 0) return "the file size must be a multiple of the block size";
    const std::uint64_t blocks = options.size / options.block * options.files;
    if (blocks < options.threads) return fmt::format("{} blocks are too few for {} threads", blocks, options.threads);
    const bool open = is_open(shape);
    if (options.lifetime == "pass" && (open || operation_of(options) == Operation::write)) {
      return "lifetime pass needs --operation read and --arrivals closed";
    }
    if (options.operation == "write" && options.residency == "cold" && options.direct == "no") {
      return "residency cold needs --operation read or --direct yes";
    }
    const std::size_t memory = 2 * options.depth * options.threads * options.block;
    if (memory > kMaxMemory) {
      return fmt::format("2 × depth × threads × block is {} bytes, more than the {} GiB allowed", memory,
                         kMaxMemory >> 30);
    }
    return "";
  }

  static std::uint64_t bytes_of(const Resolution& point) {
    const Options options = shared_axes().of(point.values);
    return options.files * options.size;
  }

  /// The files of one size in one folder. Files to be written are a separate set, because their contents change.
  FileSet& files_of(const Options& options) {
    const std::string key = fmt::format("{} {} {} {}", options.folder, options.files, options.size, options.operation);
    auto& found = file_sets_[key];
    if (!found) {
      found = std::make_unique<FileSet>(options.folder, options.files, options.size, session_.settings().seed, 0);
    }
    return *found;
  }

  /// Brings the page cache into the requested state and verifies it; judges the row and returns false if that fails.
  static bool prepare(const FileSet& files, const Options& options, Measurement& measured) {
    const bool warm = options.residency == "warm";
    files.make(warm ? Residency::warm : Residency::cold);
    const double share = files.resident_share();
    measured.details["path"] = {{"file_system", files.file_system()}, {"resident_before", share}};
    if (warm ? share >= kPresent : share <= kAbsent) return true;
    measured.judge(Status::failed, Cause::error,
                   fmt::format("residency {}: the page cache holds {:.1f} % of the files' pages ({})",
                               options.residency, 100 * share, files.file_system()));
    return false;
  }

  /// Runs the load on all threads. Rethrows the first exception.
  std::vector<Seen> run(const Options& options, const LoadShape& shape, const Values& own, const FileSet& files,
                        std::uint64_t version, unsigned repetition) {
    std::vector<Seen> seen(options.threads);
    std::atomic<bool> failed{false};
    std::exception_ptr failure;
    std::mutex mutex;
    std::latch ready(options.threads);
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < options.threads; ++t) {
        threads.emplace_back([&, t] {
          bool arrived = false;
          try {
            session_.device().use_in_this_thread();
            const Pattern pattern(options.access, files.bytes() / options.block, t, options.threads,
                                  session_.settings().seed + repetition);
            const bool once = options.residency == "cold" && operation_of(options) == Operation::read;
            const BlockShape blocks{operation_of(options), options.block, options.depth, version, once};
            const auto stop = [&failed] { return failed.load() || interrupted(); };
            const auto open_engine = [&] {
              return engine_of(options).make({.files = files.files(),
                                              .device = session_.device(),
                                              .operation = operation_of(options),
                                              .direct = options.direct == "yes",
                                              .block = options.block,
                                              .depth = options.depth,
                                              .own = own});
            };
            if (options.lifetime == "pass") {
              arrived = true;
              ready.arrive_and_wait();
              run_passes(open_engine, files, pattern, blocks, stop, seen[t]);
              return;
            }
            BlockLoad load(open_engine(), session_.device(), files, pattern, blocks);
            Schedule schedule;
            const bool open = is_open(shape);
            if (open)
              schedule = make_schedule(share_of(shape, options.threads), seconds(),
                                       session_.settings().seed + repetition + 1000 * t);
            arrived = true;
            ready.arrive_and_wait();
            seen[t].load = offer(load, {.seconds = seconds(),
                                        .window = load.window(),
                                        .schedule = open ? &schedule : nullptr,
                                        .watchdog_seconds = session_.settings().watchdog_seconds,
                                        .interrupted = [&] { return stop() || load.exhausted(); }});
            seen[t].requested = load.requested();
            seen[t].path = load.engine().path();
          } catch (...) {
            {
              const std::lock_guard lock(mutex);
              if (!failure) failure = std::current_exception();
            }
            failed = true;
            if (!arrived) ready.count_down();
          }
        });
      }
    }
    if (failure) std::rethrow_exception(failure);
    return seen;
  }

  static LoadShape share_of(LoadShape shape, unsigned threads) {
    shape.rate /= threads;
    return shape;
  }

  template <class Open, class Stop>
  void run_passes(const Open& open_engine, const FileSet& files, const Pattern& pattern, BlockShape blocks,
                  const Stop& stop, Seen& seen) {
    blocks.once = true;
    const std::uint64_t begin = now_ns();
    const auto budget = static_cast<std::uint64_t>(seconds() * 1e9);
    while (seen.passes.samples() == 0 || (now_ns() - begin < budget && !stop())) {
      const std::uint64_t opened = now_ns();
      {
        BlockLoad load(open_engine(), session_.device(), files, pattern, blocks);
        const LoadResult result = offer(load, {.seconds = 1e9,
                                               .window = load.window(),
                                               .watchdog_seconds = session_.settings().watchdog_seconds,
                                               .interrupted = [&] { return stop() || load.exhausted(); }});
        seen.requested += load.requested();
        seen.pass_bytes += load.requested();
        seen.load.latency.merge(result.latency);
        seen.path = load.engine().path();
      }
      const std::uint64_t ns = now_ns() - opened;
      seen.passes.record(ns);
      seen.pass_seconds += static_cast<double>(ns) / 1e9;
    }
  }

  /// Reads on the host what was written, without the engine. Throws Failure if a word is wrong.
  void verify_written(const Options& options, const FileSet& files, const std::vector<Seen>& seen,
                      std::uint64_t version, unsigned repetition) {
    files.make(Residency::cold);
    std::vector<Descriptor> open;
    for (const File& file : files.files()) open.emplace_back(file.path, O_RDONLY);
    const std::uint64_t per_file = options.size / options.block;
    for (unsigned t = 0; t < options.threads; ++t) {
      const Pattern pattern(options.access, files.bytes() / options.block, t, options.threads,
                            session_.settings().seed + repetition);
      const std::uint64_t written = std::min(pattern.size(), seen[t].requested / options.block);
      in_parallel(written, [&](std::size_t n) {
        std::vector<std::uint64_t> words(options.block / 8);
        auto* const data = reinterpret_cast<std::byte*>(words.data());
        const std::uint64_t block = pattern.at(n);
        const auto file = static_cast<unsigned>(block / per_file);
        const Request request{.offset = block % per_file * options.block, .bytes = options.block};
        const Completion done = move_block(Operation::read, open[file].get(), data, request);
        std::uint64_t first = ~std::uint64_t{0};
        const std::uint64_t wrong =
            done.bytes != request.bytes
                ? words.size()
                : count_wrong(data, request.bytes, files.key(file, version), request.offset, first);
        if (wrong != 0) {
          throw Failure(fmt::format("{} of {} words written at offset {} of {} are wrong", wrong, words.size(),
                                    request.offset, files.files()[file].path));
        }
      });
    }
  }

  void add_results(const Options& options, const LoadShape& shape, const FileSet& files, std::vector<Seen>& seen,
                   const IoCounters& used, Measurement& measured) {
    Seen all = seen.front();
    for (std::size_t t = 1; t < seen.size(); ++t) {
      merge(all.load, seen[t].load);
      all.passes.merge(seen[t].passes);
      all.requested += seen[t].requested;
    }
    Json& path = measured.details["path"];
    for (const auto& [name, value] : all.path) path[name] = value;
    path["resident_after"] = files.resident_share();
    path["requested_bytes"] = all.requested;
    path["read_bytes"] = used.read_bytes;
    path["written_bytes"] = used.written_bytes;
    double rate = 0;
    for (const Seen& each : seen) {
      if (each.pass_seconds > 0) rate += static_cast<double>(each.pass_bytes) / each.pass_seconds;
    }
    if (all.load.seconds > 0) {
      rate = static_cast<double>(all.load.received) / all.load.seconds * static_cast<double>(options.block);
    }
    if (rate == 0) {
      measured.judge(Status::invalid, Cause::no_results,
                     options.residency == "cold" ? "all blocks were read before the first window had ended; use larger "
                                                   "files, or a smaller depth"
                                                 : "no block arrived within the timed phase");
      return;
    }
    measured.numbers["bytes_per_second"] = rate;
    measured.numbers["blocks_per_second"] = rate / static_cast<double>(options.block);
    measured.numbers["cpu_seconds_per_gib"] =
        used.cpu_seconds / (static_cast<double>(all.requested) / static_cast<double>(std::uint64_t{1} << 30));
    measured.histograms["latency_ns"] = {all.load.latency, 1};
    if (all.passes.samples() != 0) measured.histograms["pass_ns"] = {all.passes, 1};
    if (is_open(shape)) describe_open_load(all.load, {.senders = options.threads}, measured);
    if (options.direct == "yes" && options.operation == "read" &&
        static_cast<double>(used.read_bytes) < kPresent * static_cast<double>(all.requested)) {
      measured.judge(Status::invalid, Cause::error,
                     fmt::format("{} bytes were requested with O_DIRECT, but the kernel read {} from the drive",
                                 all.requested, used.read_bytes));
    }
    add_bounds(options, measured);
  }

  static void add_bounds(const Options& options, Measurement& measured) {
    const bool read = options.operation == "read";
    measured.bounds_of_figures.emplace_back(
        "bytes_per_second", ceiling_of(read ? "copy_engine_h2d_bytes_per_second" : "copy_engine_d2h_bytes_per_second"));
    if (options.direct == "yes") {
      const Expression fio = ceiling_of(fio_limit(job_of(options)));
      measured.bounds_of_figures.emplace_back("bytes_per_second", fio);
      measured.bounds_of_figures.emplace_back("blocks_per_second",
                                              fio / given("block", static_cast<double>(options.block)));
    }
  }

  double seconds() const { return session_.settings().seconds; }

  Session& session_;
  std::map<std::string, std::unique_ptr<FileSet>> file_sets_;
  std::uint64_t versions_ = 0;
};

Json members() {
  Json engines = Json::array();
  for (const auto& [name, entry] : Engines::instance().entries()) {
    engines.push_back({{"name", name},
                       {"description", entry.description},
                       {"unavailable", entry.unavailable()},
                       {"axes", names_of(entry.axes)}});
  }
  return {{"engines", engines}};
}

std::vector<Figure> figures() {
  std::vector<Figure> all{
      {"bytes_per_second", "B/s", Better::higher, false, true, "bytes that arrived and were checked"},
      {"blocks_per_second", "1/s", Better::higher, false, true, "requests that ended and were checked"},
      {"latency_ns", "ns", Better::lower, true, true,
       "from submission, or from the due time under open load, until a block was checked in device memory"},
      {"pass_ns", "ns", Better::lower, true, false, "lifetime pass: from opening the files until they are closed"},
      {"cpu_seconds_per_gib", "s/GiB", Better::lower, false, true, "CPU time of this process per GiB requested"}};
  for (Figure& each : open_load_figures()) all.push_back(std::move(each));
  return all;
}

const ExperimentRegistration registered(
    "storage", {.description = "how bytes get from a drive or the page cache into device memory, and back",
                .axes =
                    [] {
                      AxisTable table(joined(shared_axes().list(), load_axes().list()));
                      for (const auto& [name, entry] : Engines::instance().entries()) table.add(name, entry.axes);
                      return table;
                    },
                .figures = figures(),
                .variant = {"engine"},
                .shown = {"block", "depth"},
                .rate = "bytes_per_second",
                .time = "latency_ns",
                .make = [](Session& session) { return std::make_unique<Storage>(session); },
                .threads =
                    [](const Values& values) {
                      const Options options = shared_axes().of(values);
                      const EngineEntry& engine = engine_of(options);
                      return options.threads * (1 + engine.threads(point_of(options, values)));
                    },
                .searching = {.load = offered_load()},
                .listing = {members}});

}  // namespace
}  // namespace feedrate::storage
