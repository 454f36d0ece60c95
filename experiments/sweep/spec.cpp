#include "experiments/sweep/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "common/error.hpp"
#include "common/units.hpp"
#include "variants/queue.hpp"
#include "variants/transfer.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kMostPoints = 200'000;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw BadInput(fmt::format("spec {}: {}", where, what));
}

void allow_only(const Json& object, const std::string& where, const std::set<std::string>& keys) {
  if (!object.is_object()) refuse(where, "must be an object");
  for (const auto& [key, value] : object.items()) {
    if (!keys.contains(key)) refuse(where, fmt::format("unknown key '{}'; allowed: {}", key, fmt::join(keys, ", ")));
  }
}

std::string text_of(const Json& value, const std::string& where, const std::string& what) {
  if (!value.is_string()) refuse(where, fmt::format("{} must be a text, not {}", what, value.dump()));
  return value.get<std::string>();
}

/// The object's list of that name; empty when it has none.
Json list_of(const Json& object, const std::string& where, const std::string& key) {
  Json list = object.value(key, Json::array());
  if (!list.is_array()) refuse(where, fmt::format("'{}' must be a list, not {}", key, list.dump()));
  return list;
}

/// What a spec writes for an axis' values: "64,1Ki", "pow2:6..20:2", [64, "1Ki"] or a single number.
std::vector<std::string> values_of(const std::string& axis_name, const Json& json) {
  const auto text = [](const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
  const bool free_text = axis(axis_name).free_text;
  std::vector<std::string> values;
  for (const Json& item : json.is_array() ? json : Json::array({json})) {
    if (!item.is_string() && !item.is_number()) {
      refuse(axis_name, "values must be numbers or strings, not " + item.dump());
    }
    if (free_text) {  // which may have commas
      values.push_back(text(item));
      continue;
    }
    for (auto& value : expand_values("--" + axis_name, text(item))) values.push_back(std::move(value));
  }
  if (values.empty()) refuse(axis_name, "has no values");
  return values;
}

/// Compares as the axis itself reads values, so that 1Ki equals 1024.
Json read_value(const Axis& a, const std::string& text) {
  Point scratch;
  a.set(scratch, text);
  return a.get(scratch);
}

double numeric(const std::string& where, const Axis& a, const Point& point) {
  const Json value = a.get(point);
  if (!value.is_number()) refuse(where, fmt::format("axis '{}' has no numbers", a.name));
  return value.get<double>();
}

double bound_of(const std::string& where, const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) refuse(where, "a bound must be a number, not " + value.dump());
  return static_cast<double>(parse_count(where, value.get<std::string>()));
}

/// Whether the point's values lie in `wanted`: { axis: values | {min, max} }.
bool holds(const Json& wanted, const Point& point, const std::string& where) {
  if (!wanted.is_object()) refuse(where, "'if' and 'then' must be objects of axes");
  for (const auto& [name, values] : wanted.items()) {
    const Axis& a = axis(name);
    if (values.is_object()) {
      allow_only(values, where, {"min", "max"});
      const double value = numeric(where, a, point);
      if (values.contains("min") && value < bound_of(where, values["min"])) return false;
      if (values.contains("max") && value > bound_of(where, values["max"])) return false;
      continue;
    }
    const auto allowed = values_of(name, values);
    const bool found = std::any_of(allowed.begin(), allowed.end(),
                                   [&](const std::string& text) { return read_value(a, text) == a.get(point); });
    if (!found) return false;
  }
  return true;
}

bool satisfies(const Json& constraint, const Point& point, const std::string& where) {
  allow_only(constraint, where, {"if", "then", "product", "max"});
  if (constraint.contains("if") && !holds(constraint["if"], point, where)) return true;
  if (constraint.contains("then")) return holds(constraint["then"], point, where);
  if (!constraint.contains("product") || !constraint["product"].is_array() || !constraint.contains("max")) {
    refuse(where, "a constraint needs 'then', or 'product' (a list of axes) and 'max'");
  }
  double product = 1;
  for (const Json& name : constraint["product"]) {
    product *= numeric(where, axis(text_of(name, where, "an axis of 'product'")), point);
  }
  return product <= bound_of(where, constraint["max"]);
}

bool satisfies_all(const Json& constraints, const Point& point, const std::string& where) {
  return std::all_of(constraints.begin(), constraints.end(),
                     [&](const Json& constraint) { return satisfies(constraint, point, where); });
}

/// Axes that step together, with equally many values each.
struct Step {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> values;
};

std::vector<Step> steps_of(const Json& part, const std::string& where) {
  std::vector<Step> steps;
  std::set<std::string> zipped;
  for (const Json& group : list_of(part, where, "zip")) {
    if (!group.is_array()) refuse(where, "'zip' must be a list of lists of axes");
    Step step;
    for (const Json& name_json : group) {
      const auto name = text_of(name_json, where, "an axis of 'zip'");
      if (!part["axes"].contains(name)) refuse(where, fmt::format("'zip' names '{}', which has no values", name));
      if (!zipped.insert(name).second) refuse(where, fmt::format("'zip' names '{}' twice", name));
      step.names.push_back(name);
      step.values.push_back(values_of(name, part["axes"][name]));
      if (step.values.back().size() != step.values.front().size()) {
        refuse(where, fmt::format("zipped axes need equally many values: '{}' has {}, '{}' has {}", step.names.front(),
                                  step.values.front().size(), name, step.values.back().size()));
      }
    }
    if (!step.names.empty()) steps.push_back(std::move(step));
  }
  for (const auto& [name, values] : part["axes"].items()) {
    if (!zipped.contains(name)) steps.push_back({{name}, {values_of(name, values)}});
  }
  return steps;
}

std::vector<Point> expand_part(const Json& part, const Json& constraints, const std::string& where) {
  std::vector<Point> points;
  const std::vector<Step> steps = steps_of(part, where);
  std::size_t total = 1;
  for (const Step& step : steps) total *= step.values.front().size();
  if (total > kMostPoints) refuse(where, fmt::format("{} points; {} are the most", total, kMostPoints));
  for (std::size_t n = 0; n < total; ++n) {
    Point point;
    std::size_t rest = n;
    for (const Step& step : steps) {
      const std::size_t at = rest % step.values.front().size();
      rest /= step.values.front().size();
      for (std::size_t i = 0; i < step.names.size(); ++i) axis(step.names[i]).set(point, step.values[i][at]);
    }
    if (satisfies_all(constraints, point, where)) points.push_back(std::move(point));
  }
  return points;
}

/// The searches that begin at a part's points. Where a member's axis is one of the part's own, it is not free.
void add_searches(const Json& part, const Json& constraints, const std::string& where, std::vector<Search>& searches) {
  const Json& wanted = part["search"];
  allow_only(wanted, where + " search", {"goal", "seconds", "axes"});
  const std::string goal = text_of(wanted.value("goal", Json("messages_per_second")), where, "search.goal");
  if (goal != "messages_per_second" && goal != "bytes_per_second") {
    refuse(where, fmt::format("search.goal: '{}'; allowed: messages_per_second, bytes_per_second", goal));
  }
  const Json seconds = wanted.value("seconds", Json(3));
  if (!seconds.is_number() || !(seconds > 0) || seconds > 3600) {
    refuse(where, fmt::format("search.seconds: {}; allowed: more than 0, up to 3600", seconds.dump()));
  }
  std::vector<AxisValues> of_all;
  const Json axes_json = wanted.value("axes", Json::object());
  for (const auto& [name, values] : axes_json.items()) of_all.push_back({name, values_of(name, values)});
  for (const Point& start : expand_part(part, constraints, where)) {
    Search search{start, goal, seconds, of_all,
                  [constraints, where](const Point& point) { return satisfies_all(constraints, point, where); }};
    const auto& queue = Queues::instance().get("--queue", start.queue);
    const auto add = [&](const std::vector<AxisValues>& own) {
      search.free.insert(search.free.end(), own.begin(), own.end());
    };
    add(queue.search);
    if (queue.uses_transfer) add(Transfers::instance().get("--transfer", start.transfer).search);
    std::erase_if(search.free, [&](const AxisValues& each) { return part["axes"].contains(each.axis); });
    searches.push_back(std::move(search));
  }
}

void add_part(const Json& document, const Json& part, const std::string& where, Spec& spec) {
  Json constraints = list_of(document, where, "constraints");
  for (const Json& own : list_of(part, where, "constraints")) constraints.push_back(own);
  if (part.contains("search")) {
    add_searches(part, constraints, where, spec.searches);
  } else {
    for (Point& point : expand_part(part, constraints, where)) spec.points.push_back(std::move(point));
  }
}

void apply_override(Json& parts, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == text.npos || equals + 1 == text.size()) throw BadInput("--axis", text, "name=values");
  const std::string name = text.substr(0, equals);
  const Axis& a = axis(name);
  try {
    for (const std::string& value : expand_values("--" + name, text.substr(equals + 1))) read_value(a, value);
  } catch (const BadInput& error) {
    throw error.from("--axis " + name);
  }
  for (Json& part : parts) part["axes"][name] = text.substr(equals + 1);
}

/// A zipped axis that the command line replaces needs as many values as those it steps together with.
void check_zips(const Json& parts, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const std::string name = text.substr(0, text.find('='));
    for (const Json& part : parts) {
      for (const Json& group : part.value("zip", Json::array())) {
        if (!group.is_array() || std::find(group.begin(), group.end(), name) == group.end()) continue;
        const std::size_t count = values_of(name, part["axes"][name]).size();
        std::string others, example = "--axis " + text;
        bool equal = true;
        for (const Json& other_json : group) {
          const auto other = other_json.get<std::string>();
          if (other == name || !part["axes"].contains(other)) continue;
          others += (others.empty() ? "" : ", ") + other;
          equal &= values_of(other, part["axes"][other]).size() == count;
          example += fmt::format(" --axis {}=…", other);
        }
        if (equal) continue;
        throw BadInput(
            fmt::format("--axis {}: the spec steps {} together with {} (zip); give each of them {} value{}: {}", text,
                        name, others, count, count == 1 ? "" : "s", example));
      }
    }
  }
}

}  // namespace

Spec load_spec(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  const std::string where = file.string();
  Json document;
  try {
    document = Json::parse(std::ifstream(file));
  } catch (const Json::exception& error) {
    refuse(where, fmt::format("not valid JSON: {}", error.what()));
  }
  allow_only(document, where, {"name", "description", "run", "capacity", "parts", "axes", "zip", "constraints"});
  allow_only(
      document.value("run", Json::object()), where + " run",
      {"seconds", "warmup", "messages", "repetitions", "seed", "watchdog", "pin", "until-precise", "throughput-within",
       "latency-within", "percentile", "most-repetitions", "time-limit", "no-stages", "keep-disturbed"});
  if (!document.contains("parts")) {
    if (!document.contains("axes")) refuse(where, "needs 'axes' or 'parts'");
    document["parts"] = Json::array({{{"axes", document["axes"]}, {"zip", document.value("zip", Json::array())}}});
    document.erase("axes");
    document.erase("zip");
  }
  if (!document["parts"].is_array() || document["parts"].empty()) refuse(where, "'parts' must be a list of parts");
  for (const Json& part : document["parts"]) {
    allow_only(part, where + " part", {"name", "axes", "zip", "constraints", "search"});
    if (!part.contains("axes") || !part["axes"].is_object() || part["axes"].empty()) {
      refuse(where, "every part needs an object 'axes' that names some");
    }
  }
  for (const std::string& text : overrides) apply_override(document["parts"], text);
  check_zips(document["parts"], overrides);

  Spec spec;
  spec.name = text_of(document.value("name", Json(file.stem().string())), where, "'name'");
  spec.description = text_of(document.value("description", Json("")), where, "'description'");
  for (std::size_t i = 0; i < document["parts"].size(); ++i) {
    const Json& part = document["parts"][i];
    try {
      add_part(document, part, where, spec);
    } catch (const BadInput& error) {  // of an axis, which names itself as an option
      const std::string name = error.option().empty() ? "" : error.option().substr(2);
      throw error.from(fmt::format("spec {}: parts[{}]: {}", where, i, name == "axis" ? name : "axis " + name));
    }
  }
  if (spec.points.empty() && spec.searches.empty()) refuse(where, "its constraints leave no point");
  spec.document = std::move(document);
  return spec;
}

std::filesystem::path find_spec(const std::string& name_or_path) {
  namespace fs = std::filesystem;
  if (fs::is_regular_file(name_or_path)) return name_or_path;
  std::vector<fs::path> folders;
  if (const char* named = std::getenv("FEEDRATE_SPECS"); named != nullptr) folders.emplace_back(named);
  const fs::path executable = fs::read_symlink("/proc/self/exe").parent_path();
  folders.emplace_back("experiments/specs");
  folders.push_back(executable / "../experiments/specs");        // a bundle
  folders.push_back(executable / "../../../experiments/specs");  // build/<preset>/bin
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) continue;
    if (fs::path file = folder / (name_or_path + ".json"); fs::is_regular_file(file)) return file;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().stem());
  }
  throw BadInput("SPEC", name_or_path, fmt::format("a file, or one of {}", fmt::join(names, ", ")));
}

}  // namespace feedrate
