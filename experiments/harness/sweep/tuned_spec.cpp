#include "experiments/harness/sweep/tuned_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/error.hpp"

namespace feedrate {
namespace {

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
