#include "experiments/sweep.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/units.hpp"
#include "experiments/options.hpp"
#include "experiments/recorder.hpp"
#include "variants/queue.hpp"

namespace feedrate {
namespace {

constexpr double kSetUpSeconds = 0.1;  // a cell's, for the estimate
constexpr double kLongestByMessages = 86400;
constexpr double kUnstoppableSeconds = 30;  // beyond what a cell may take at most

/// Calls `strike` unless destroyed in time: the way out when a cell hangs where no flag is looked at, such as a kernel
/// that never ends.
class Deadman {
 public:
  Deadman(double seconds, std::function<void()> strike)
      : thread_([this, seconds, strike = std::move(strike)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          const auto limit = std::chrono::duration<double>(seconds);
          if (!wake_.wait_for(lock, stop, limit, [] { return false; }) && !stop.stop_requested()) strike();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

struct Cell {
  Resolution resolution;
  unsigned repetition;
  std::string id;
};

/// Points that come to the same measurement are measured once.
std::vector<Resolution> distinct(const std::vector<Point>& points, Device& device) {
  std::vector<Resolution> all;
  std::set<std::string> seen;
  for (const Point& point : points) {
    Resolution resolution = resolve(point, device);
    if (seen.insert(params_of(resolution.point).dump()).second) all.push_back(std::move(resolution));
  }
  return all;
}

std::vector<Cell> ordered(const std::vector<Resolution>& resolutions, const RunSettings& settings) {
  std::vector<Cell> cells;
  for (unsigned repetition = 0; repetition < settings.repetitions; ++repetition) {
    const auto first = static_cast<std::ptrdiff_t>(cells.size());
    for (const Resolution& resolution : resolutions) {
      cells.push_back({resolution, repetition, row_id(params_of(resolution.point), repetition)});
    }
    std::mt19937_64 random(settings.seed * 1000 + repetition);
    std::shuffle(cells.begin() + first, cells.end(), random);
  }
  return cells;
}

std::string short_text(const Point& p) {
  std::string text = fmt::format("{} {} {} payload={} window={} batch={}", p.queue, p.transfer, p.workload,
                                 format_count(p.payload), p.window, p.batch);
  if (p.producers != 1) text += fmt::format(" producers={}", p.producers);
  if (p.streams != 0) text += fmt::format(" streams={}", p.streams);
  if (p.lanes != 0) text += fmt::format(" lanes={}", p.lanes);
  if (p.block != 0) text += fmt::format(" block={}", p.block);
  if (p.pack > 1) text += fmt::format(" pack={}", p.pack);
  return text;
}

std::string outcome_text(const Json& row) {
  const std::string status = row["status"];
  if (!row.contains("throughput")) return fmt::format("{}: {}", status, row["reason"].get<std::string>());
  return fmt::format("{}{}msg/s, p50 {}{}", status == "ok" ? "" : status + ": ",
                     format_si(row["throughput"]["messages_per_second"]), format_ns(row["latency_ns"]["p50"]),
                     status == "ok" ? "" : " (" + row["reason"].get<std::string>() + ")");
}

/// One line a cell; on a terminal the line of a good cell is overwritten by the next.
class Progress {
 public:
  Progress(std::size_t cells, double seconds_per_cell) : cells_(cells), per_cell_(seconds_per_cell), start_(now_ns()) {}
  void before(std::size_t k, const Cell& cell) {
    const double spent = static_cast<double>(now_ns() - start_) / 1e9;
    const double per_cell = done_ < 3 ? per_cell_ : spent / static_cast<double>(done_);
    head_ = fmt::format("[{}/{}] {} · {:.0f} s left", k, cells_, short_text(cell.resolution.point),
                        per_cell * static_cast<double>(cells_ - k + 1));
    if (terminal_) fmt::print(stderr, "\r\033[K{}", head_);
  }
  void after(const Json& row) {
    ++done_;
    const bool good = row["status"] == "ok";
    fmt::print(stderr, "{}{} · {}{}", terminal_ ? "\r\033[K" : "", head_, outcome_text(row),
               terminal_ && good ? "" : "\n");
  }
  void end() const {
    if (terminal_) fmt::print(stderr, "\n");
  }

 private:
  std::size_t cells_, done_ = 0;
  double per_cell_;
  std::uint64_t start_;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::string head_;
};

void print_plan(const std::vector<Cell>& cells, const std::vector<Resolution>& points, const Spec& spec,
                const RunSettings& settings, double seconds) {
  const auto impossible =
      std::count_if(points.begin(), points.end(), [](const auto& r) { return !r.impossible.empty(); });
  fmt::print(stderr, "{}: {} cells = {} points × {} repetitions, {} of the points impossible here; about {:.0f} s\n",
             spec.name, cells.size(), points.size(), settings.repetitions, impossible, seconds);
}

bool any_uses_redis(const std::vector<Resolution>& points) {
  return std::any_of(points.begin(), points.end(), [](const Resolution& r) {
    return r.impossible.empty() && Queues::instance().get("--queue", r.point.queue).uses_redis;
  });
}

/// Makes the directory with its spec.json, which is there whole or not at all: a resume must be able to read it,
/// whenever this is killed.
void make_results(const std::filesystem::path& directory, const Json& document) {
  try {
    std::filesystem::create_directories(directory);
    const auto partial = directory / "spec.json.partial";
    std::ofstream file(partial);
    file.exceptions(std::ios::failbit | std::ios::badbit);
    file << document.dump(2) << "\n";
    file.close();
    std::filesystem::rename(partial, directory / "spec.json");
  } catch (const std::system_error& error) {  // of the file system as of the stream
    throw BadInput("--out", directory.string(), fmt::format("a directory to write to ({})", error.what()));
  }
}

/// Ids of the rows of a kind that earlier runs left.
std::set<std::string> ids_of(const std::vector<Json>& rows, const std::string& kind) {
  std::set<std::string> ids;
  for (const Json& row : rows) {
    // A cell that Ctrl-C cut short is no measurement yet.
    if (row.value("status", "") == "invalid" && row.value("reason", "") == "interrupted") continue;
    if (row.value("kind", "") == kind) ids.insert(row.at("id").get<std::string>());
  }
  return ids;
}

/// `--profile-cell` names a cell by its id or its number in the dry run's list.
std::string id_to_profile(const std::vector<Cell>& cells, const std::string& wanted) {
  if (wanted.empty()) return "";
  for (std::size_t k = 0; k < cells.size(); ++k) {
    if (wanted == cells[k].id || wanted == std::to_string(k + 1)) return cells[k].id;
  }
  throw BadInput("--profile-cell", wanted, fmt::format("1 to {}, or a row's id (see --dry-run)", cells.size()));
}

}  // namespace

int run_sweep(Session& session, const Spec& spec, const SweepOptions& options) {
  const RunSettings& settings = session.settings();
  const std::vector<Resolution> points = distinct(spec.points, session.device());
  std::vector<Cell> cells = ordered(points, settings);
  const double per_cell = settings.seconds + settings.warmup_seconds + kSetUpSeconds;
  print_plan(cells, points, spec, settings, per_cell * static_cast<double>(cells.size()));
  if (options.dry_run) {
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const auto& [resolution, repetition, id] = cells[k];
      fmt::print("{:5} {} rep {} {}{}\n", k + 1, id, repetition, short_text(resolution.point),
                 resolution.impossible.empty() ? "" : " · skipped: " + resolution.impossible);
    }
    return 0;
  }
  const std::string profiled_id = id_to_profile(cells, options.profile_cell);
  const bool redis = any_uses_redis(points);
  if (redis) reach_redis(session);
  if (!options.resume) make_results(options.directory, spec.document);
  Recorder recorder(options.directory / "rows.jsonl");
  const DeviceInfo device = session.device().info();
  fmt::print(stderr, "device {}: {}; results in {}\n", session.device().kind(), device.name,
             options.directory.string());

  const auto done = ids_of(recorder.earlier(), "cell"), floors = ids_of(recorder.earlier(), "floor");
  if (done.empty()) {  // floors come first: a cell says that all of them have rows
    for (const Json& row : session.measure_floors(redis)) {
      if (!floors.contains(row.at("id").get<std::string>())) recorder.write(row);
    }
  }
  for (const Json& row : recorder.earlier()) {
    if (row.value("kind", "") == "floor") session.add_floor_row(row);
  }
  const std::size_t all = cells.size();
  std::erase_if(cells, [&](const Cell& cell) { return done.contains(cell.id); });
  if (cells.size() != all) fmt::print(stderr, "{} cells are done already\n", all - cells.size());

  Progress progress(cells.size(), per_cell);
  for (std::size_t k = 0; k < cells.size() && !interrupted(); ++k) {
    const Cell& cell = cells[k];
    progress.before(k + 1, cell);
    // A phase counted in messages may take as long as it likes: while results come, the load's own watchdog is content.
    const double phases = settings.messages != 0 ? kLongestByMessages : settings.seconds + settings.warmup_seconds;
    const double longest = phases + 3 * settings.watchdog_seconds + kUnstoppableSeconds;
    Json row;
    {
      const Deadman deadman(longest, [&] {
        recorder.write(session.failed_row(cell.resolution.point, cell.repetition,
                                          fmt::format("hung: could not be stopped within {:.0f} s", longest)));
        spdlog::error("a cell hangs and can't be stopped; starting again behind it");
        if (options.restart) options.restart();
        _exit(1);
      });
      const bool profiled = profiled_id == cell.id;
      if (profiled) session.device().profile(true);
      row = session.run_cell(cell.resolution, cell.repetition);
      if (profiled) session.device().profile(false);
    }
    if (interrupted() && row["status"] != "ok") break;  // cut short: the next run measures it
    recorder.write(row);
    progress.after(row);
  }
  progress.end();
  return interrupted() ? 130 : 0;
}

}  // namespace feedrate
