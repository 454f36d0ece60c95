#include "experiments/harness/sweep/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/threads/threads.hpp"
#include "experiments/harness/sweep/halving.hpp"

namespace feedrate {
namespace {

constexpr double kShortest = 0.03, kShortestWarmup = 0.015;  // seconds of a first try
constexpr double kLongestPass = 1. / 12;  // share of the budget, so that one slow try does not use it up
constexpr unsigned kLeastCap = 3;         // a producer, a collector and a worker

/// The free axes of the search that have an effect on this device; a block size has none on the CPU device.
struct Grid {
  std::vector<AxisValues> axes;
  Halving::Candidate start;

  Grid(const Search& search, Session& session) : table_(session.info().axes()) {
    for (AxisValues axis_values : search.free) {
      const Axis& a = table_.axis(axis_values.axis);
      const std::string own = text_of(table_.value(search.start, a.name));
      auto& values = axis_values.values;
      if (std::find(values.begin(), values.end(), own) == values.end()) values.push_back(own);
      std::stable_sort(values.begin(), values.end(),
                       [&](const std::string& left, const std::string& right) { return a.read(left) < a.read(right); });
      std::set<Json> seen;
      for (const std::string& value : values) {
        Values point = search.start;
        point[a.name] = a.read(value);
        seen.insert(table_.params(session.resolve(point).values));
      }
      if (seen.size() < 2) continue;
      start.push_back(static_cast<std::size_t>(std::find(values.begin(), values.end(), own) - values.begin()));
      axes.push_back(std::move(axis_values));
    }
  }
  Values point(const Search& search, const Halving::Candidate& candidate) const {
    Values point = search.start;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      point[axes[i].axis] = table_.axis(axes[i].axis).read(axes[i].values[candidate[i]]);
    }
    return point;
  }
  /// The values to check against the constraints: a searched value that leaves the choice open, such as `producers` 0,
  /// is replaced by the resolved one.
  Values counted(Values asked, const Values& resolved) const {
    for (const AxisValues& each : axes) {
      if (const auto found = resolved.find(each.axis); found != resolved.end()) asked[each.axis] = found->second;
    }
    return asked;
  }
  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> all;
    for (const AxisValues& each : axes) all.push_back(each.values.size());
    return all;
  }

 private:
  const AxisTable& table_;
};

/// Whether an axis has the same value at all points.
bool is_fixed(const AxisTable& axes, const std::vector<Values>& points, const std::string& axis) {
  std::set<std::string> values;
  for (const Values& point : points) values.insert(text_of(axes.value(point, axis)));
  return values.size() < 2;
}

bool offers_load(const ExperimentInfo& info, const Values& point) {
  const auto& load = info.entry().searching.load;
  if (!load) return false;
  const Values closed = load->closed(point);
  return std::any_of(closed.begin(), closed.end(), [&](const auto& axis_and_value) {
    return axis_and_value.second != info.axes().value(point, axis_and_value.first);
  });
}

void remove_from_zips(Json& part, const std::string& axis) {
  if (!part.contains("zip")) return;
  Json zips = Json::array();
  for (const Json& group : part["zip"]) {
    Json left = Json::array();
    for (const Json& name : group) {
      if (name != axis) left.push_back(name);
    }
    if (!left.empty()) zips.push_back(std::move(left));
  }
  part["zip"] = std::move(zips);
}

/// Turns a part of the spec into a search. `points` are the points that the part would measure.
void set_free(Json& part, const ExperimentInfo& info, const std::vector<Values>& points) {
  Json free = Json::object();
  const auto consider = [&](const AxisValues& setting, bool of_experiment) {
    Json& axes = part["axes"];
    if (free.contains(setting.axis)) return;
    if (!axes.contains(setting.axis)) {
      if (of_experiment) free[setting.axis] = setting.values;  // a member's axes are searched by default
    } else if (!is_fixed(info.axes(), points, setting.axis)) {
      free[setting.axis] = axes[setting.axis];
      axes.erase(setting.axis);
      remove_from_zips(part, setting.axis);
    }
  };
  for (const AxisValues& setting : info.entry().searching.settings) consider(setting, true);
  for (const Values& point : points) {
    for (const AxisValues& setting : info.entry().searching.members(point)) consider(setting, false);
  }
  if (part["axes"].empty()) {  // a part needs at least one axis
    const std::string& axis = info.entry().variant.front();
    part["axes"][axis] = to_json(info.axes().axis(axis).standard);
  }
  part["search"]["axes"] = std::move(free);
}

}  // namespace

Tuner::Tuner(Session& session, Results& results, std::function<void()> restart)
    : session_(session), results_(results), restart_(std::move(restart)) {
  for (const Json& row : results.earlier()) {
    if (row.contains("search") && row.value("cause", "") != text_of(Cause::interrupted)) earlier_[row.at("id")] = row;
  }
}

Json Tuner::measure(const Search& search, const Resolution& cell, unsigned rung, unsigned times, unsigned number) {
  Json identity = session_.info().axes().params(cell.values);
  identity["search"] = fmt::format("{} {}", search.goal, rung);
  const std::string id = row_id(identity, times);
  if (const auto known = earlier_.find(id); known != earlier_.end()) return known->second;
  RunSettings settings = brief(session_.settings());
  settings.seconds = kShortest * (1u << rung);
  settings.warmup_seconds = kShortestWarmup;
  settings.messages = 0;
  settings.longest_pass_seconds = std::max(kLongestPass * search.seconds, 5 * settings.seconds);
  const RunSettings usual = session_.exchange_settings(settings);
  const Json mark{
      {"variant", session_.info().variant(cell.values)}, {"goal", search.goal}, {"rung", rung}, {"try", number}};
  Json row = results_.measure(session_, cell, 0, restart_, [&](Json& made) {
    made["id"] = id;
    made["search"] = mark;
  });
  session_.exchange_settings(usual);
  if (!interrupted()) results_.write(row);
  return row;
}

Values Tuner::find(const Search& search, const Tell& tell) {
  const unsigned cap = std::max(available_cores(), kLeastCap);
  const Grid grid(search, session_);
  const ExperimentInfo& info = session_.info();
  struct Known {
    double score = 0;
    unsigned times = 0;  // measured
    std::set<Halving::Candidate> asked;
  };
  std::map<std::string, Known> all_known;  // keyed by point and rung, because candidates may resolve to the same point
  unsigned tries = 0;
  const auto attempt = [&](const Halving::Candidate& candidate, unsigned rung) -> Halving::Trial {
    const Values asked = grid.point(search, candidate);
    const Resolution cell = session_.resolve(asked);
    if (!cell.impossible.empty() || info.entry().threads(cell.values) > cap) return {};
    if (!search.allowed(grid.counted(asked, cell.values))) return {};
    if (interrupted()) return {0, search.seconds};
    Known& known = all_known[fmt::format("{} {}", info.axes().params(cell.values).dump(), rung)];
    // A point that another candidate has measured is not measured again; a repeated candidate is measured once more.
    if (known.asked.insert(candidate).second && known.times != 0) return {known.score, 0};
    const Json row = measure(search, cell, rung, known.times++, tries++);
    known.score = figure_of(row, search.goal).value_or(0);
    tell(row, tries);
    return {known.score, row["time"]["duration_seconds"]};
  };
  // Each variant has its own random numbers, independent of earlier searches.
  const std::uint64_t seed = session_.settings().seed ^ hash64(info.variant(search.start) + search.goal);
  return grid.point(search, Halving(grid.sizes(), grid.start, search.seconds, seed).find(attempt));
}

Spec tuned(const Spec& spec, const Tuning& tuning) {
  Json document = spec.document;
  for (std::size_t i = 0; i < document["parts"].size(); ++i) {
    Json& part = document["parts"][i];
    Json alone = document;
    alone["parts"] = Json::array({part});
    alone["parts"][0].erase("search");
    const std::vector<Values> points = parse_spec(std::move(alone), spec.name).points;
    for (const Values& point : points) {
      if (!offers_load(*spec.info, point)) continue;
      throw BadInput("SPEC", spec.name,
                     fmt::format("a spec with closed load only; parts[{}] offers open load, and `feedrate capacity` "
                                 "finds the highest rate of a queue",
                                 i));
    }
    if (!part.contains("search")) set_free(part, *spec.info, points);
    part["search"]["seconds"] = tuning.seconds_each;
    if (!tuning.goal.empty()) part["search"]["goal"] = tuning.goal;
  }
  document["name"] = spec.name + "-tuned";
  Spec made = parse_spec(std::move(document), spec.name);
  if (std::all_of(made.searches.begin(), made.searches.end(), [](const Search& s) { return s.free.empty(); })) {
    throw BadInput("SPEC", spec.name, "a spec with at least one free setting; all settings of this one are fixed");
  }
  return made;
}

Json spec_of_points(const Spec& spec, std::span<const Resolution> points) {
  Json parts = Json::array();
  for (const Resolution& point : points) {
    if (!point.impossible.empty()) continue;
    Json axes = Json::object();
    for (const auto& [name, value] : point.values) {
      if (name != "device" && !is_none(value)) axes[name] = to_json(value);
    }
    parts.push_back({{"name", spec.info->text(point.values)}, {"axes", std::move(axes)}});
  }
  return {{"name", spec.name + "-found"},
          {"description", fmt::format("Settings found by the searches of {}.", spec.name)},
          {"experiment", spec.info->name()},
          {"run", spec.document.value("run", Json::object())},
          {"parts", std::move(parts)}};
}

}  // namespace feedrate
