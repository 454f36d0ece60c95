#include "experiments/harness/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads/threads.hpp"
#include "common/units.hpp"
#include "experiments/harness/say.hpp"
#include "experiments/harness/sweep/progress.hpp"
#include "experiments/harness/sweep/repeats.hpp"
#include "experiments/harness/sweep/tune.hpp"

namespace feedrate {
namespace {

constexpr double kSetUpSeconds = 0.1;  // per cell, for the estimate; checks and comparisons of a cell come on top

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
  say("{}\n", wrapped(fmt::format("{}; at least {:.0f} s", text, seconds)));
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

/// The results of a spec's searches, each with the number of its tries.
std::vector<Chosen> search_points(Session& session, std::vector<Search> searches, Results& results,
                                  const SweepOptions& options, Summary& answer) {
  std::mt19937_64 random(session.settings().seed);
  std::shuffle(searches.begin(), searches.end(), random);
  Tuner tuner(session, results, options.restart);
  Progress progress(session.info(), searches.size(), searches.empty() ? 0 : searches.front().seconds);
  std::vector<Chosen> found;
  for (std::size_t k = 0; k < searches.size() && !interrupted(); ++k) {
    const Search& search = searches[k];
    double best = 0;
    std::size_t all_tries = 0;
    const auto show = [&](const std::string& text) {
      progress.show_now(
          fmt::format("search {}/{}  {}  {}", k + 1, searches.size(), text, session.info().text(search.start)));
    };
    show("first try");
    Values values = tuner.find(search, [&](const Json& row, unsigned tries) {
      all_tries = tries;
      answer.add(row);
      best = std::max(best, figure_of(row, search.goal).value_or(0));
      show(fmt::format("best {:>12} of {} tries", session.info().text(search.goal, best), tries));
    });
    found.push_back({std::move(values), all_tries});
    if (all_tries == 0) show("nothing to measure");
    progress.keep();
  }
  progress.end();
  return found;
}

/// Measures repetitions of points and writes their rows. Rows of earlier invocations count.
class Rounds {
 public:
  Rounds(Session& session, Results& results, const SweepOptions& options, Summary& answer)
      : session_(session), results_(results), options_(options), answer_(answer), done_(results.done("cell")) {
    for (const Json& row : results.earlier()) {
      if (row.value("kind", "") != "cell") continue;
      answer.add(row);
      if (row.contains("search")) continue;
      if (!done_.contains(row.at("id").get<std::string>())) continue;
      failures_.add(row);
      repeats_of(row).add(row);
    }
  }
  /// `of`: for points that were chosen as the best, the number of points each was chosen from, by its parameters.
  void measure(const std::vector<Resolution>& points, unsigned first_repetition, const std::string& profiled_id,
               const std::map<std::string, std::size_t>& of) {
    const RunSettings& settings = session_.settings();
    const ExperimentInfo& info = session_.info();
    const Labels labels(info, points);
    Progress progress(info, points.size() * settings.repetitions - count_done(points, first_repetition),
                      seconds_per_cell());
    for (unsigned repetition = first_repetition, left = 1; left != 0 && !interrupted(); ++repetition) {
      left = 0;
      for (const Cell& cell : round_of(info, points, settings, repetition)) {
        const std::string params = info.axes().params(cell.resolution.values).dump();
        const auto chosen = of.find(params);
        Repeats& so_far = repeats(params, chosen != of.end());
        if (so_far.enough()) continue;
        ++left;
        if (done_.contains(cell.id)) continue;
        if (interrupted()) break;
        progress.before(labels.of(cell.resolution.values));
        const bool profiled = profiled_id == cell.id;
        if (profiled) session_.device().profile(true);
        const std::uint64_t began = now_ns();
        Json row = results_.measure(session_, cell.resolution, cell.repetition, options_.restart);
        seconds_ += 1e-9 * static_cast<double>(now_ns() - began);
        ++cells_;
        if (profiled) session_.device().profile(false);
        if (interrupted() && row["status"] != "ok") break;  // interrupted; the next run measures this cell
        if (chosen != of.end()) row["afresh"] = {{"of", chosen->second}};
        if (Json stop = so_far.add(row); !stop.empty()) row["stop"] = std::move(stop);
        results_.write(row);
        done_.insert(cell.id);
        answer_.add(row);
        failures_.add(row);
        progress.after(row);
      }
    }
    progress.end();
  }
  std::size_t count_done(const std::vector<Resolution>& points, unsigned first_repetition) const {
    std::size_t count = 0;
    for (unsigned i = 0; i < session_.settings().repetitions; ++i) {
      for (const Cell& cell : round_of(session_.info(), points, session_.settings(), first_repetition + i)) {
        count += done_.contains(cell.id) ? 1 : 0;
      }
    }
    return count;
  }
  const Failures& failures() const { return failures_; }
  /// The mean of the cells so far; before the first one, an estimate.
  double seconds_per_cell() const {
    const RunSettings& settings = session_.settings();
    return cells_ != 0 ? seconds_ / static_cast<double>(cells_)
                       : settings.seconds + settings.warmup_seconds + kSetUpSeconds;
  }

 private:
  Repeats& repeats(const std::string& params, bool afresh) {
    return repeats_.try_emplace({params, afresh}, session_.settings(), session_.info().entry()).first->second;
  }
  Repeats& repeats_of(const Json& row) { return repeats(row.at("params").dump(), is_afresh(row)); }

  Session& session_;
  Results& results_;
  const SweepOptions& options_;
  Summary& answer_;
  std::set<std::string> done_;  // ids
  Failures failures_;
  double seconds_ = 0;     // spent on cells
  std::size_t cells_ = 0;  // measured here
  std::map<std::pair<std::string, bool>, Repeats> repeats_;
};

/// Points without duplicates, and the number that each was chosen from, by its parameters.
std::pair<std::vector<Resolution>, std::map<std::string, std::size_t>> distinct_chosen(const std::vector<Chosen>& all,
                                                                                       Session& session) {
  std::vector<Values> values;
  std::map<std::string, std::size_t> of;
  for (const Chosen& each : all) {
    values.push_back(each.values);
    std::size_t& known = of[session.info().axes().params(session.resolve(each.values).values).dump()];
    known = std::max(known, each.of);
  }
  return {distinct(values, session), std::move(of)};
}

/// Measures the points that are the best of several afresh, as often as every point was measured. The repetitions
/// follow those that a disturbed or imprecise point may need.
void measure_chosen(Session& session, const Summary& answer, Rounds& rounds) {
  std::vector<Chosen> chosen = answer.chosen();
  std::erase_if(chosen, [](const Chosen& each) { return each.of < 2; });
  if (chosen.empty()) return;
  const auto [points, of] = distinct_chosen(chosen, session);
  const RunSettings& settings = session.settings();
  const unsigned first =
      2 * std::max(settings.repetitions, settings.precision.wanted ? settings.precision.max_repetitions : 0);
  const std::size_t all = points.size() * settings.repetitions, done = rounds.count_done(points, first);
  say("measuring the best of several points afresh: {} points, {} cells; about {:.0f} s\n", points.size(), all - done,
      rounds.seconds_per_cell() * static_cast<double>(all - done));
  rounds.measure(points, first, "", of);
  if (interrupted()) say("interrupted: {} of {} cells measured afresh\n", rounds.count_done(points, first), all);
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
  const std::string profiled_id = id_to_profile(planned(info, points, settings), options.profile_cell);
  const std::vector<Search> searches = distinct_searches(spec.searches, session);
  const std::unique_ptr<Summary> answer = summary_of(info);
  Rounds rounds(session, results, options, *answer);
  print_plan(spec.name, points, searches, settings, rounds.count_done(points, 0));
  if (const auto text = crowded_text(info, points, available_cores()); !text.empty()) say("{}\n", text);
  results.begin(session, all_points(spec, session));
  std::map<std::string, std::size_t> of;
  if (!searches.empty()) {
    auto [found, tries] = distinct_chosen(search_points(session, searches, results, options, *answer), session);
    of = std::move(tries);
    std::vector<Values> all = spec.points;
    for (Resolution& each : found) all.push_back(std::move(each.values));
    points = distinct(all, session);
    if (!interrupted() && !options.found.empty()) write_whole(options.found, spec_of_points(spec, points));
  }
  rounds.measure(points, 0, profiled_id, of);
  const bool complete = !interrupted();
  if (complete) measure_chosen(session, *answer, rounds);
  results.end(session);
  if (!complete) {
    // The result of a search is measured like a point.
    const std::size_t all = std::max(points.size(), spec.points.size() + searches.size()) * settings.repetitions;
    say("interrupted: {} of {} cells measured\n", rounds.count_done(points, 0), all);
  }
  say("{}", answer->text());
  const Failures& failures = rounds.failures();
  if (failures.cells != 0) {
    say("{}\n", wrapped(fmt::format("{} of {} cells failed; first failure: {}", failures.cells,
                                    rounds.count_done(points, 0), failures.first)));
  }
  if (interrupted()) return 130;
  const bool nothing =
      !points.empty() && std::ranges::none_of(points, [](const auto& r) { return r.impossible.empty(); });
  if (nothing) {
    say("{}\n",
        wrapped(fmt::format("nothing was measured: all {} points are impossible on this machine, the first because {}",
                            points.size(), points.front().impossible)));
  }
  return failures.cells != 0 || nothing ? 1 : 0;
}

}  // namespace feedrate
