#include "experiments/sweep.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/units.hpp"
#include "experiments/options.hpp"
#include "experiments/repeats.hpp"
#include "experiments/results.hpp"
#include "variants/queue.hpp"

namespace feedrate {
namespace {

constexpr double kSetUpSeconds = 0.1;  // a cell's, for the estimate

struct Cell {
  Resolution resolution;
  unsigned repetition;
  std::string id;
};

/// One repetition of every point, in an order of its own.
std::vector<Cell> block_of(const std::vector<Resolution>& resolutions, const RunSettings& settings,
                           unsigned repetition) {
  std::vector<Cell> cells;
  cells.reserve(resolutions.size());
  for (const Resolution& resolution : resolutions) {
    cells.push_back({resolution, repetition, row_id(params_of(resolution.point), repetition)});
  }
  std::mt19937_64 random(settings.seed * 1000 + repetition);
  std::shuffle(cells.begin(), cells.end(), random);
  return cells;
}

std::vector<Cell> planned(const std::vector<Resolution>& resolutions, const RunSettings& settings) {
  std::vector<Cell> cells;
  for (unsigned repetition = 0; repetition < settings.repetitions; ++repetition) {
    for (Cell& cell : block_of(resolutions, settings, repetition)) cells.push_back(std::move(cell));
  }
  return cells;
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
  void before(const Cell& cell) {
    const std::size_t k = done_ + 1;
    cells_ = std::max(cells_, k);  // repetitions until they are precise can't be counted beforehand
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
  const std::vector<Cell> plan = planned(points, settings);
  const double per_cell = settings.seconds + settings.warmup_seconds + kSetUpSeconds;
  print_plan(plan, points, spec, settings, per_cell * static_cast<double>(plan.size()));
  if (options.dry_run) {
    for (std::size_t k = 0; k < plan.size(); ++k) {
      const auto& [resolution, repetition, id] = plan[k];
      fmt::print("{:5} {} rep {} {}{}\n", k + 1, id, repetition, short_text(resolution.point),
                 resolution.impossible.empty() ? "" : " · skipped: " + resolution.impossible);
    }
    return 0;
  }
  const std::string profiled_id = id_to_profile(plan, options.profile_cell);
  const bool redis = any_uses_redis(points);
  if (redis) reach_redis(session);
  Results results(options.directory, spec.document, options.resume);
  const DeviceInfo device = session.device().info();
  fmt::print(stderr, "device {}: {}; results in {}\n", session.device().kind(), device.name,
             options.directory.string());
  results.provide_floors(session, redis);

  const auto done = results.done("cell");
  std::map<std::string, Repeats> repeats;  // by a point's parameters
  for (const Json& row : results.earlier()) {
    if (row.value("kind", "") != "cell" || !done.contains(row.at("id").get<std::string>())) continue;
    repeats.try_emplace(row.at("params").dump(), settings).first->second.add(row);
  }
  if (!done.empty()) fmt::print(stderr, "{} cells are done already\n", done.size());

  Progress progress(plan.size() - std::min(plan.size(), done.size()), per_cell);
  for (unsigned repetition = 0, left = 1; left != 0 && !interrupted(); ++repetition) {
    left = 0;
    for (const Cell& cell : block_of(points, settings, repetition)) {
      Repeats& so_far = repeats.try_emplace(params_of(cell.resolution.point).dump(), settings).first->second;
      if (so_far.enough()) continue;
      ++left;
      if (done.contains(cell.id)) continue;
      if (interrupted()) break;
      progress.before(cell);
      const bool profiled = profiled_id == cell.id;
      if (profiled) session.device().profile(true);
      Json row = results.measure(session, cell.resolution, cell.repetition, options.restart);
      if (profiled) session.device().profile(false);
      if (interrupted() && row["status"] != "ok") break;  // cut short: the next run measures it
      if (Json stop = so_far.add(row); !stop.empty()) row["stop"] = std::move(stop);
      results.write(row);
      progress.after(row);
    }
  }
  progress.end();
  return interrupted() ? 130 : 0;
}

}  // namespace feedrate
