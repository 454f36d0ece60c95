#include "experiments/harness/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "common/units.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/progress.hpp"
#include "experiments/harness/sweep/repeats.hpp"
#include "experiments/harness/sweep/tune.hpp"

namespace feedrate {
namespace {

constexpr double kSetUpSeconds = 0.1;  // per cell, for the estimate

struct Cell {
  Resolution resolution;
  unsigned repetition;
  std::string id;
};

/// One repetition of every point, in its own shuffled order.
std::vector<Cell> round_of(const ExperimentInfo& info, const std::vector<Resolution>& resolutions,
                           const RunSettings& settings, unsigned repetition) {
  std::vector<Cell> cells;
  cells.reserve(resolutions.size());
  for (const Resolution& resolution : resolutions) {
    cells.push_back({resolution, repetition, row_id(info.axes().params(resolution.values), repetition)});
  }
  std::mt19937_64 random(settings.seed * 1000 + repetition);
  std::shuffle(cells.begin(), cells.end(), random);
  return cells;
}

std::vector<Cell> planned(const ExperimentInfo& info, const std::vector<Resolution>& resolutions,
                          const RunSettings& settings) {
  std::vector<Cell> cells;
  for (unsigned repetition = 0; repetition < settings.repetitions; ++repetition) {
    for (Cell& cell : round_of(info, resolutions, settings, repetition)) cells.push_back(std::move(cell));
  }
  return cells;
}

/// Removes searches that are equal on this device, and sets each search's variant as resolved for this device.
std::vector<Search> distinct_searches(const std::vector<Search>& searches, Session& session) {
  const ExperimentInfo& info = session.info();
  std::vector<Search> all;
  std::set<std::string> seen;
  for (Search search : searches) {
    const Values here = session.resolve(search.start).values;
    for (const std::string& axis : info.entry().variant) search.start[axis] = info.axes().value(here, axis);
    if (seen.insert(info.axes().params(session.resolve(search.start).values).dump() + search.goal).second)
      all.push_back(std::move(search));
  }
  return all;
}

std::size_t count_done(const std::vector<Cell>& cells, const std::set<std::string>& done) {
  return static_cast<std::size_t>(
      std::count_if(cells.begin(), cells.end(), [&](const Cell& cell) { return done.contains(cell.id); }));
}

void print_plan(const std::string& name, const std::vector<Resolution>& points, const std::vector<Search>& searches,
                const RunSettings& settings, std::size_t done) {
  const auto impossible =
      std::count_if(points.begin(), points.end(), [](const auto& r) { return !r.impossible.empty(); });
  // The result of a search is measured like a point.
  const std::size_t count = points.size() + searches.size(), all = count * settings.repetitions;
  double seconds = (settings.seconds + settings.warmup_seconds + kSetUpSeconds) * static_cast<double>(all - done);
  for (const Search& search : searches) seconds += search.seconds;
  std::string text = fmt::format("{}: ", name);
  if (!searches.empty()) {
    text +=
        fmt::format("{} searches for the best settings, {:.3g} s each; ", searches.size(), searches.front().seconds);
  }
  text += fmt::format("{} cells = {} points × {} repetitions", all, count, settings.repetitions);
  if (impossible != 0) text += fmt::format("; {} points are impossible on this machine", impossible);
  if (done != 0) text += fmt::format("; {} cells are done, {} remain", done, all - done);
  say("{}\n", wrapped(fmt::format("{}; about {:.0f} s", text, seconds)));
}

/// Number of failed cells, and the reason for the first failure.
struct Failures {
  std::size_t cells = 0;
  std::string first;

  void add(const Json& row) {
    if (row.value("status", "") == text_of(Status::failed) && cells++ == 0) first = row.value("reason", "");
  }
};

/// `--profile-cell` selects a cell by its ID or its number in the dry run's list.
std::string id_to_profile(const std::vector<Cell>& cells, const std::string& wanted) {
  if (wanted.empty()) return "";
  for (std::size_t k = 0; k < cells.size(); ++k) {
    if (wanted == cells[k].id || wanted == std::to_string(k + 1)) return cells[k].id;
  }
  throw BadInput("--profile-cell", wanted, fmt::format("1 to {}, or a row ID (see --dry-run)", cells.size()));
}

/// The points of a spec, followed by the results of its searches.
std::vector<Resolution> search_points(Session& session, std::vector<Values> points, std::vector<Search> searches,
                                      Results& results, const SweepOptions& options) {
  std::mt19937_64 random(session.settings().seed);
  std::shuffle(searches.begin(), searches.end(), random);
  Tuner tuner(session, results, options.restart);
  Progress progress(session.info(), searches.size(), searches.empty() ? 0 : searches.front().seconds);
  for (std::size_t k = 0; k < searches.size() && !interrupted(); ++k) {
    const Search& search = searches[k];
    double best = 0;
    bool tried = false;
    const auto show = [&](const std::string& found) {
      progress.show_now(
          fmt::format("search {}/{}  {}  {}", k + 1, searches.size(), found, session.info().text(search.start)));
    };
    show("first try");
    points.push_back(tuner.find(search, [&](const Json& row, unsigned tries) {
      tried = true;
      best = std::max(best, figure_of(row, search.goal).value_or(0));
      show(fmt::format("best {:>12} of {} tries", session.info().text(search.goal, best), tries));
    }));
    if (!tried) show("nothing to measure");
    progress.keep();
  }
  progress.end();
  return distinct(points, session);
}

}  // namespace

std::vector<Resolution> all_points(const Spec& spec, Session& session) {
  std::vector<Values> points = spec.points;
  for (const Search& search : spec.searches) points.push_back(search.start);
  return distinct(points, session);
}

int plan_sweep(Session& session, const Spec& spec) {
  session.experiment().check(all_points(spec, session));
  const ExperimentInfo& info = session.info();
  const std::vector<Resolution> points = distinct(spec.points, session);
  const std::vector<Search> searches = distinct_searches(spec.searches, session);
  print_plan(spec.name, points, searches, session.settings(), 0);
  for (const Search& search : searches) {
    std::string free;
    for (const AxisValues& each : search.free) free += " " + each.axis;
    fmt::print("search {}: highest {} over{}\n", info.text(search.start), search.goal, free);
  }
  std::size_t k = 0;
  for (const auto& [resolution, repetition, id] : planned(info, points, session.settings())) {
    fmt::print("{:5} {} rep {} {}{}\n", ++k, id, repetition, info.text(resolution.values),
               resolution.impossible.empty() ? "" : " · skipped: " + resolution.impossible);
  }
  if (const auto text = crowded_text(info, points, available_cores()); !text.empty()) say("{}\n", text);
  return 0;
}

int run_sweep(Session& session, const Spec& spec, Results& results, const SweepOptions& options) {
  const RunSettings& settings = session.settings();
  const ExperimentInfo& info = session.info();
  std::vector<Resolution> points = distinct(spec.points, session);
  std::vector<Cell> plan = planned(info, points, settings);
  const std::string profiled_id = id_to_profile(plan, options.profile_cell);
  const auto done = results.done("cell");
  const std::vector<Search> searches = distinct_searches(spec.searches, session);
  print_plan(spec.name, points, searches, settings, count_done(plan, done));
  if (const auto text = crowded_text(info, points, available_cores()); !text.empty()) say("{}\n", text);
  results.begin(session, all_points(spec, session));
  if (!searches.empty()) {
    points = search_points(session, spec.points, searches, results, options);
    if (!interrupted() && !options.found.empty()) write_whole(options.found, spec_of_points(spec, points));
    plan = planned(info, points, settings);
  }

  const std::unique_ptr<Summary> answer = summary_of(info);
  Failures failures;
  std::map<std::string, Repeats> repeats;  // keyed by a point's parameters
  for (const Json& row : results.earlier()) {
    if (row.value("kind", "") != "cell" || row.contains("search")) continue;
    answer->add(row);
    if (!done.contains(row.at("id").get<std::string>())) continue;
    failures.add(row);
    repeats.try_emplace(row.at("params").dump(), settings, info.entry()).first->second.add(row);
  }
  std::set<std::string> measured = done;
  const Labels labels(info, points);
  Progress progress(info, plan.size() - count_done(plan, done),
                    settings.seconds + settings.warmup_seconds + kSetUpSeconds);
  for (unsigned repetition = 0, left = 1; left != 0 && !interrupted(); ++repetition) {
    left = 0;
    for (const Cell& cell : round_of(info, points, settings, repetition)) {
      Repeats& so_far =
          repeats.try_emplace(info.axes().params(cell.resolution.values).dump(), settings, info.entry()).first->second;
      if (so_far.enough()) continue;
      ++left;
      if (done.contains(cell.id)) continue;
      if (interrupted()) break;
      progress.before(labels.of(cell.resolution.values));
      const bool profiled = profiled_id == cell.id;
      if (profiled) session.device().profile(true);
      Json row = results.measure(session, cell.resolution, cell.repetition, options.restart);
      if (profiled) session.device().profile(false);
      if (interrupted() && row["status"] != "ok") break;  // interrupted; the next run measures this cell
      if (Json stop = so_far.add(row); !stop.empty()) row["stop"] = std::move(stop);
      results.write(row);
      measured.insert(cell.id);
      answer->add(row);
      failures.add(row);
      progress.after(row);
    }
  }
  progress.end();
  results.end(session);
  if (interrupted()) {
    // The result of a search is measured like a point.
    const std::size_t all = std::max(plan.size(), (spec.points.size() + searches.size()) * settings.repetitions);
    say("interrupted: {} of {} cells measured\n", count_done(plan, measured), all);
  }
  say("{}", answer->text());
  if (failures.cells != 0) {
    say("{}\n", wrapped(fmt::format("{} of {} cells failed; first failure: {}", failures.cells,
                                    count_done(plan, measured), failures.first)));
  }
  if (interrupted()) return 130;
  return failures.cells != 0 ? 1 : 0;
}

}  // namespace feedrate
