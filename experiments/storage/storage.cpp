#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "common/clock.hpp"
#include "common/hash.hpp"
#include "common/units.hpp"
#include "experiments/harness/load/open_load.hpp"
#include "experiments/harness/machine/machine_monitor.hpp"
#include "experiments/harness/measure/session.hpp"
#include "experiments/harness/timeline/cell_timeline.hpp"
#include "experiments/storage/file_set.hpp"
#include "experiments/storage/fio.hpp"
#include "experiments/storage/io_counters.hpp"
#include "experiments/storage/options.hpp"
#include "experiments/storage/run_blocks.hpp"
#include "variants/storage/mapping_trial.hpp"

/// The `storage` experiment: how bytes get from a drive or the page cache into device memory, and back
/// (experiments/storage/README.md).
namespace feedrate::storage {
namespace {

constexpr double kPresent = 0.99, kAbsent = 0.01;  // resident shares that count as warm and as cold
constexpr double kLittleTolerance = 1.1;           // of requests in flight above the window

Medium medium_of(const Options& options) {
  return {options.folder, options.files, options.size, targets_of(options), engine_of(options).own_storage};
}

class Storage final : public Experiment {
 public:
  explicit Storage(Session& session) : session_(session), versions_(hash64(session.run_id())) {}

  Resolution resolve(const Values& values) override {
    Options options = shared_axes().of(values);
    options.device = session_.device().kind();
    LoadShape shape = load_axes().of(values);
    Resolution made;
    made.values = values_on(engine_of(options).axes, values);
    if (options.is_direct() && options.residency == "warm") {
      options.residency = "cold";
      made.unused["residency"] = "with --direct no; O_DIRECT does not use the page cache";
    }
    if (options.on_devices()) {
      options.files = static_cast<unsigned>(targets_of(options).size());
      made.unused["files"] = "without --target";
    }
    shared_axes().put(options, made.values);
    load_axes().put(shape, made.values);
    made.impossible = why_impossible(options, shape, made.values);
    const std::uint64_t blocks = options.files * options.blocks_per_file();
    const double due = shape.rate * session_.settings().seconds;
    if (made.impossible.empty() && is_open(shape) && options.reads() && options.residency == "cold" &&
        due > static_cast<double>(blocks)) {
      made.impossible = fmt::format(
          "cold blocks are read once, and {:.0f} are due in {} s, but the files have {}; use larger files or a lower "
          "--rate",
          due, session_.settings().seconds, blocks);
    }
    return made;
  }

  void check(std::span<const Resolution> points) override {
    std::map<std::uint64_t, Medium> needed;  // by file system: all file sets exist until the end
    std::set<std::string> sets;
    for (const Resolution& point : points) {
      const Options options = shared_axes().of(point.values);
      if (!point.impossible.empty() || !sets.insert(name_of_set(options)).second) continue;
      Medium medium = medium_of(options);
      if (!medium.devices.empty()) {
        FileSet::require_room(medium);
        continue;
      }
      const std::uint64_t bytes = medium.files * medium.bytes;
      Medium& sum =
          needed.try_emplace(FileSet::file_system_of(medium.folder), Medium{medium.folder, 1, 0}).first->second;
      sum.bytes += bytes;
    }
    for (const auto& [number, sum] : needed) FileSet::require_room(sum);
  }

  void add_limits(LimitList& limits, std::span<const Resolution> points) override {
    for (const Resolution& point : points) {
      const Options options = shared_axes().of(point.values);
      if (!point.impossible.empty() || !is_bound_by_fio(options)) continue;
      add_fio_limit(limits, job_of(options), [this, options] {
        const std::shared_ptr<FileSet> files = files_of(options);
        if (!options.reads()) known_.at(name_of_set(options)).written = true;
        return files->files().front();
      });
    }
  }

  Measurement measure(const Resolution& cell, const Repetition& repetition) override {
    const Options options = shared_axes().of(cell.values);
    const LoadShape shape = load_axes().of(cell.values);
    Measurement measured;
    measured.host_threads = options.threads * (1 + engine_of(options).threads(point_of(options, cell.values)));
    session_.device().use_in_this_thread();
    const std::shared_ptr<FileSet> files = files_of(options);
    try {
      measure_files(files, options, shape, cell, repetition, measured);
    } catch (const Hung& hung) {  // the threads that hang keep the files
      measured.judge(Status::failed, Cause::hung, hung.what());
    } catch (const std::exception& failure) {
      const std::string change = files->what_changed();
      measured.judge(Status::failed, Cause::error, failure.what() + (change.empty() ? "" : "; " + change));
    }
    if (measured.status == Status::failed) forget(files);  // the next cell gets new files
    return measured;
  }

 private:
  void measure_files(const std::shared_ptr<FileSet>& held, const Options& options, const LoadShape& shape,
                     const Resolution& cell, const Repetition& repetition, Measurement& measured) {
    const FileSet& files = *held;
    if (!prepare(files, options, measured)) return;
    const auto shared =
        std::make_shared<const Job>(Job{session_.shared_device(), session_.settings(), options, shape, cell.values,
                                        held, options.reads() ? files.version() : ++versions_, repetition.number});
    const Job& job = *shared;
    Known& known = known_.at(name_of_set(options));
    if (!options.reads()) known.written = true;
    if (engine_of(options).own_storage && options.reads() && !std::exchange(known.filled, true)) fill_devices(job);
    MachineMonitor monitor(session_.gpu());
    const Captured captured(session_);
    const IoCounters before = IoCounters::now(files.block_device());
    if (repetition.timeline != nullptr) repetition.timeline->begin();
    const std::uint64_t began = now_ns();
    const std::vector<Seen> seen = run_blocks(shared);
    const std::uint64_t ended = now_ns();
    if (!options.reads()) {
      files.sync();
      measured.details["sync_seconds"] = static_cast<double>(now_ns() - ended) / 1e9;
    }
    const IoCounters used = IoCounters::now(files.block_device()) - before;
    measured.machine = monitor.stop();
    if (repetition.timeline != nullptr) {
      measured.gpu_use = repetition.timeline->end({}, began, static_cast<double>(ended - began) / 1e9,
                                                  {{"params", session_.info().axes().params(cell.values)}});
    }
    if (measures_fio(options)) add_fio(options, files.files().front(), measured);
    if (!options.reads()) verify_written(job, seen);
    add_results(job, seen, used, measured);
    if (const std::string change = files.what_changed(); !change.empty()) {
      measured.judge(Status::failed, Cause::error, change);
    }
  }

  /// Whether fio can do what a point does.
  static bool measures_fio(const Options& options) {
    return options.is_direct() && options.shift == 0 && !engine_of(options).own_storage;
  }
  /// Whether the limit of fio's job bounds a point. A limit's name does not contain the drive, so only the first folder
  /// or target has limits.
  bool is_bound_by_fio(const Options& options) {
    if (!measures_fio(options)) return false;
    const std::string place = options.on_devices() ? options.target : options.folder;
    if (place_of_limits_.empty()) place_of_limits_ = place;
    return place == place_of_limits_;
  }
  /// Runs fio after the timed phase. A drive's rate changes within seconds, for example while earlier writes are still
  /// under way below it, so an engine is compared with this figure rather than with the limit.
  static void add_fio(const Options& options, const File& file, Measurement& measured) {
    if (!options.reads()) return;  // fio would overwrite the blocks that are verified next
    try {
      measured.numbers["fio_bytes_per_second"] = read_fio(job_of(options), file);
    } catch (const Failure&) {  // the limit's warning names the reason
    }
  }
  static constexpr const char* kDevices = "devices ";
  static std::string name_of_set(const Options& options) {
    if (options.on_devices()) return fmt::format("{}{} {}", kDevices, options.target, options.size);
    return fmt::format("{} {} {} {}", options.folder, options.files, options.size, options.operation);
  }
  /// The files of one size in one folder, or the devices. Files to be written are a separate set, because their
  /// contents change. Files that others have changed since the last cell are replaced by new ones, and devices that a
  /// cell has written are filled again before they are read.
  std::shared_ptr<FileSet> files_of(const Options& options) {
    const std::string name = name_of_set(options);
    if (const auto found = known_.find(name); found != known_.end()) {
      const Known& known = found->second;
      if (known.files->what_changed().empty() && !(options.reads() && known.written)) return known.files;
      known_.erase(found);
    }
    if (options.on_devices()) {  // sets of other sizes hold the same devices
      std::erase_if(known_, [](const auto& each) { return each.first.starts_with(kDevices); });
    }
    const auto made = std::make_shared<FileSet>(medium_of(options), session_.settings().seed, 0);
    known_.emplace(name, Known{made});
    return made;
  }
  void forget(const std::shared_ptr<FileSet>& files) {
    std::erase_if(known_, [&](const auto& each) { return each.second.files == files; });
  }

  /// Brings the page cache into the requested state and verifies it; judges the row and returns false if that fails.
  static bool prepare(const FileSet& files, const Options& options, Measurement& measured) {
    const bool warm = options.residency == "warm";
    files.make(warm ? Residency::warm : Residency::cold);
    const double share = files.resident_share();
    measured.details["path"] = {{"file_system", files.file_system()}, {"resident_before", share}};
    if (warm ? share >= kPresent : share <= kAbsent) return true;
    measured.judge(
        Status::failed, Cause::error,
        fmt::format("residency {}{}: the page cache holds {:.1f} % of the files' pages ({}){}", options.residency,
                    options.is_direct() ? " (set by --direct yes)" : "", 100 * share, files.file_system(),
                    files.file_system() == "tmpfs" && !warm ? "; choose a --folder on a drive" : ""));
    return false;
  }

  void add_results(const Job& job, const std::vector<Seen>& seen, const IoCounters& used, Measurement& measured) {
    const Options& options = job.options;
    Seen all = seen.front();
    for (std::size_t t = 1; t < seen.size(); ++t) {
      merge(all.load, seen[t].load);
      all.passes.merge(seen[t].passes);
      all.requested += seen[t].requested;
      all.cache_hits += seen[t].cache_hits;
      all.cache_loads += seen[t].cache_loads;
    }
    Json& path = measured.details["path"];
    for (const auto& [name, value] : all.path) path[name] = value;
    path["resident_after"] = job.files->resident_share();
    path["requested_bytes"] = all.requested;
    path["read_bytes"] = used.read_bytes;
    path["written_bytes"] = used.written_bytes;
    if (used.device_read_bytes) path["device_read_bytes"] = *used.device_read_bytes;
    if (used.device_written_bytes) path["device_written_bytes"] = *used.device_written_bytes;
    double rate = 0;
    for (const Seen& each : seen) {
      if (each.pass_seconds > 0) rate += static_cast<double>(each.requested) / each.pass_seconds;
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
    if (const auto fio = measured.numbers.find("fio_bytes_per_second"); fio != measured.numbers.end()) {
      measured.numbers["share_of_fio"] = rate / fio->second;
    }
    measured.numbers["blocks_per_second"] = rate / static_cast<double>(options.block);
    const std::uint64_t in_gpu = all.cache_hits * options.block;
    measured.numbers["cpu_seconds_per_gib"] =
        used.cpu_seconds / (static_cast<double>(all.requested + in_gpu) / static_cast<double>(std::uint64_t{1} << 30));
    if (all.load.latency.samples() != 0) measured.histograms["latency_ns"] = {all.load.latency, 1};
    if (all.cache_loads + all.cache_hits != 0) {
      measured.numbers["cache_hits_per_second"] = static_cast<double>(all.cache_hits) / all.load.seconds;
      measured.numbers["cache_loads_per_second"] = static_cast<double>(all.cache_loads) / all.load.seconds;
    }
    if (all.passes.samples() != 0) measured.histograms["pass_ns"] = {all.passes, 1};
    if (is_open(job.shape)) describe_open_load(all.load, {.senders = options.threads}, measured);
    if (options.is_direct() && options.reads() && !options.on_devices() &&
        static_cast<double>(used.read_bytes) < kPresent * static_cast<double>(all.requested)) {
      measured.judge(Status::invalid, Cause::error,
                     fmt::format("{} bytes were requested with O_DIRECT, but the kernel read {} from the drive",
                                 all.requested, used.read_bytes));
    }
    if (all.cache_hits + all.cache_loads == 0) check_in_flight(job, all.load, measured);
    add_bounds(options, measured);
  }

  /// Little's law: requests in flight are rate × mean latency, and can never exceed the window. A request that ended in
  /// the timed phase began at most the longest latency before it, so the law holds for the phase with this time added.
  static void check_in_flight(const Job& job, const LoadResult& load, Measurement& measured) {
    if (is_open(job.shape) || load.seconds == 0) return;
    const double waited = static_cast<double>(load.received) * load.latency.mean() / 1e9;
    const double in_flight = waited / (load.seconds + static_cast<double>(load.latency.max()) / 1e9);
    const std::uint64_t window = 2 * job.options.depth * job.options.threads;
    measured.details["path"]["mean_in_flight"] = waited / load.seconds;
    if (in_flight > kLittleTolerance * static_cast<double>(window)) {
      measured.judge(Status::invalid, Cause::error,
                     fmt::format("rate × mean latency is {:.1f} requests in flight, but the window allows only {}",
                                 in_flight, window));
    }
  }

  void add_bounds(const Options& options, Measurement& measured) {
    const bool read = options.reads();
    if (const auto hits = measured.numbers.find("cache_hits_per_second");
        hits != measured.numbers.end() && hits->second > 0) {
      return;  // these blocks are in device memory
    }
    measured.bounds_of_figures.emplace_back(
        "bytes_per_second", ceiling_of(read ? "copy_engine_h2d_bytes_per_second" : "copy_engine_d2h_bytes_per_second"));
    if (is_bound_by_fio(options)) {
      const Expression fio = ceiling_of(fio_limit(job_of(options)));
      measured.bounds_of_figures.emplace_back("bytes_per_second", fio);
      measured.bounds_of_figures.emplace_back("blocks_per_second",
                                              fio / given("block", static_cast<double>(options.block)));
    }
  }

  /// The files of a set, and what cells have done with them.
  struct Known {
    std::shared_ptr<FileSet> files;
    bool filled = false;   ///< the engine has written the contents of its own devices
    bool written = false;  ///< a cell has written other contents
  };
  Session& session_;
  std::map<std::string, Known> known_;  // by name_of_set()
  std::string place_of_limits_;         // the folder or target in which fio measured its limits
  std::uint64_t versions_;  // of contents; another run's contents, which a drive may still have, are not accepted
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
      {"fio_bytes_per_second", "B/s", Better::higher, false, false,
       "rate of fio's job of the same shape right after this repetition"},
      {"share_of_fio", "", Better::higher, false, false,
       "bytes_per_second, relative to fio's rate right after this repetition"},
      {"blocks_per_second", "1/s", Better::higher, false, true, "requests that ended and were checked"},
      {"latency_ns", "ns", Better::lower, true, true,
       "from submission, or from the due time under open load, until a block was checked in device memory"},
      {"pass_ns", "ns", Better::lower, true, false, "lifetime pass: from opening the files until they are closed"},
      {"cache_hits_per_second", "1/s", Better::higher, false, false,
       "blocks that GPU threads found in the page cache in GPU memory, and checked"},
      {"cache_loads_per_second", "1/s", Better::higher, false, false,
       "blocks that GPU threads read from storage, and checked"},
      {"cpu_seconds_per_gib", "s/GiB", Better::lower, false, true,
       "CPU time of this process per GiB requested, or found in the page cache in GPU memory"}};
  for (Figure& each : open_load_figures()) all.push_back(std::move(each));
  return all;
}

/// What all engines do alike at a point under closed load; depth, threads and their own axes are settings.
std::optional<Task> task_of(const Values& values) {
  if (is_open(load_axes().of(values))) return std::nullopt;
  const Options options = shared_axes().of(values);
  const auto pages = values.find("cache-pages");
  const bool in_gpu = pages != values.end() && !is_none(pages->second);
  const std::string cache = in_gpu ? "GPU cache" : options.is_direct() ? "direct" : options.residency;
  return Task{
      fmt::format("{} {} {}{}{}", options.operation, options.access, cache, options.lifetime == "pass" ? " pass" : "",
                  options.shift == 0 ? "" : fmt::format(" shifted {}", options.shift)),
      options.block,
      fmt::format("of {}{}{}", options.files == 1 ? "" : std::to_string(options.files) + " × ",
                  format_count(options.size),
                  options.on_devices()                 ? " on " + options.target
                  : options.folder != Options{}.folder ? " in " + options.folder
                                                       : "")};
}

OfferedLoad offered_blocks() {
  OfferedLoad load = offered_load();
  load.rate_figure = "blocks_per_second";
  return load;
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
                .terminal = {.task = task_of},
                .searching = {.load = offered_blocks()},
                .listing = {members},
                .helper = try_registration,
                .unused_options = {"external-worker", "messages", "no-stages", "pin", "warmup"}});

}  // namespace
}  // namespace feedrate::storage
