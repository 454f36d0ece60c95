#include "experiments/harness/sweep/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "common/error.hpp"
#include "common/units.hpp"
#include "experiments/harness/measure/settings.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kMaxPoints = 200'000;

[[noreturn]] void reject(const std::string& where, const std::string& what) {
  throw BadInput(fmt::format("spec {}: {}", where, what));
}

void allow_only(const Json& object, const std::string& where, const std::set<std::string>& keys) {
  if (!object.is_object()) reject(where, "must be an object");
  for (const auto& [key, value] : object.items()) {
    if (!keys.contains(key)) reject(where, fmt::format("unknown key '{}'; allowed: {}", key, fmt::join(keys, ", ")));
  }
}

std::string as_text(const Json& value, const std::string& where, const std::string& what) {
  if (!value.is_string()) reject(where, fmt::format("{} must be a string, not {}", what, value.dump()));
  return value.get<std::string>();
}

/// The object's list with this key; empty if there is none.
Json list_of(const Json& object, const std::string& where, const std::string& key) {
  Json list = object.value(key, Json::array());
  if (!list.is_array()) reject(where, fmt::format("'{}' must be a list, not {}", key, list.dump()));
  return list;
}

/// Names the only other experiment that has all axes of these parts, for a message; empty unless there is one.
std::string hint_for_experiment(const ExperimentInfo& info, const Json& parts) {
  std::vector<std::string> fits;
  for (const auto& [name, entry] : Experiments::instance().entries()) {
    std::set<std::string> known;
    const AxisTable table = entry.axes();
    for (const auto& [axis, owners] : table.entries()) known.insert(axis.name);
    bool has_all = name != info.name();
    for (const Json& part : parts) {
      for (const auto& [axis, values] : part["axes"].items()) has_all &= known.contains(axis);
    }
    if (has_all) fits.push_back(name);
  }
  if (fits.size() != 1) return "";
  return fmt::format("; these axes are those of another experiment: add \"experiment\": \"{}\"", fits.front());
}

/// "all" stands for all words of an axis, except "none", unless it is one of these words itself.
std::vector<std::string> expanded(const Axis& a, const std::string& text) {
  std::vector<std::string> words = a.words && text == "all" ? a.words() : std::vector<std::string>{};
  if (words.empty() || std::ranges::find(words, "all") != words.end()) return expand_values("--" + a.name, text);
  std::erase(words, "none");
  return words;
}

/// The values of an axis in a spec: "64,1Ki", "pow2:6..20:2", [64, "1Ki"] or a single number; "all" for words.
std::vector<std::string> values_of(const Axis& a, const Json& json) {
  const auto text = [](const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
  std::vector<std::string> values;
  for (const Json& item : json.is_array() ? json : Json::array({json})) {
    if (!item.is_string() && !item.is_number()) {
      reject("axis " + a.name, "values must be numbers or strings, not " + item.dump());
    }
    if (a.free_text) {  // the value may contain commas
      values.push_back(text(item));
      continue;
    }
    for (auto& value : expanded(a, text(item))) values.push_back(std::move(value));
  }
  if (values.empty()) reject("axis " + a.name, "has no values");
  return values;
}

double bound_of(const std::string& where, const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) reject(where, "a bound must be a number, not " + value.dump());
  return static_cast<double>(parse_count(where, value.get<std::string>()));
}

/// A spec's constraints on the points of one experiment.
class Constraints {
 public:
  Constraints(std::shared_ptr<const ExperimentInfo> info, Json list, std::string where)
      : info_(std::move(info)), list_(std::move(list)), where_(std::move(where)) {}
  bool allow(const Values& point) const {
    return std::all_of(list_.begin(), list_.end(), [&](const Json& each) { return satisfied(each, point); });
  }

 private:
  double numeric(const std::string& name, const Values& point) const {
    const Axis& a = info_->axes().axis(name);
    if (a.words || a.free_text) reject(where_, fmt::format("axis '{}' is not numeric", name));
    return number_of(info_->axes().value(point, name));
  }
  /// Whether the point's values are in `wanted`: { axis: values | {min, max} }.
  bool holds(const Json& wanted, const Values& point) const {
    if (!wanted.is_object()) reject(where_, "'if' and 'then' must be objects of axes");
    for (const auto& [name, values] : wanted.items()) {
      const Axis& a = info_->axes().axis(name);
      if (values.is_object()) {
        allow_only(values, where_, {"min", "max"});
        const double value = numeric(name, point);
        if (values.contains("min") && value < bound_of(where_, values["min"])) return false;
        if (values.contains("max") && value > bound_of(where_, values["max"])) return false;
        continue;
      }
      // Values are compared as read by the axis, so that 1Ki equals 1024.
      const auto allowed = values_of(a, values);
      const Value value = info_->axes().value(point, name);
      if (std::none_of(allowed.begin(), allowed.end(), [&](const std::string& text) { return a.read(text) == value; }))
        return false;
    }
    return true;
  }
  bool satisfied(const Json& constraint, const Values& point) const {
    allow_only(constraint, where_, {"if", "then", "product", "max"});
    if (constraint.contains("if") && !holds(constraint["if"], point)) return true;
    if (constraint.contains("then")) return holds(constraint["then"], point);
    if (!constraint.contains("product") || !constraint["product"].is_array() || !constraint.contains("max")) {
      reject(where_, "a constraint needs 'then', or 'product' (a list of axes) and 'max'");
    }
    double product = 1;
    for (const Json& name : constraint["product"]) {
      product *= numeric(as_text(name, where_, "an axis of 'product'"), point);
    }
    return product <= bound_of(where_, constraint["max"]);
  }

  std::shared_ptr<const ExperimentInfo> info_;
  Json list_;
  std::string where_;
};

/// Axes that step together; all have the same number of values.
struct Step {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> values;
};

/// Parser of a spec's parts.
class Parts {
 public:
  Parts(std::shared_ptr<const ExperimentInfo> info, std::string where)
      : info_(std::move(info)), axes_(info_->axes()), where_(std::move(where)) {}

  void add(const Json& document, const Json& part, Spec& spec) const {
    Json list = list_of(document, where_, "constraints");
    for (const Json& own : list_of(part, where_, "constraints")) list.push_back(own);
    const Constraints constraints(info_, std::move(list), where_);
    if (part.contains("search")) {
      add_searches(part, constraints, spec.searches);
    } else {
      for (Values& point : expand(part, constraints)) spec.points.push_back(std::move(point));
    }
  }
  /// "axis=values" replaces that axis in every part.
  void replace(Json& parts, const std::string& text, const std::string& option) const {
    const auto equals = text.find('=');
    if (equals == text.npos || equals + 1 == text.size()) throw BadInput(option, text, "name=values");
    const std::string name = text.substr(0, equals);
    std::string source = option;
    try {
      const Axis& a = axes_.axis(name);
      source += " " + name;
      for (const std::string& value : expanded(a, text.substr(equals + 1))) a.read(value);
    } catch (const BadInput& error) {
      throw source == "--axis" ? error : error.from(source);
    }
    for (Json& part : parts) part["axes"][name] = text.substr(equals + 1);
  }
  /// A zipped axis that the command line replaces needs as many values as the axes that it steps with.
  void check_zips(const Json& parts, const Overrides& overrides) const {
    for (const std::string& text : overrides.values) {
      for (const Json& part : parts) {
        for (const Json& group : part.value("zip", Json::array())) check_zip(part, group, text, overrides.option);
      }
    }
  }

 private:
  std::vector<std::string> values(const Json& part, const std::string& name) const {
    return values_of(axes_.axis(name), part["axes"][name]);
  }

  std::vector<Step> steps_of(const Json& part) const {
    std::vector<Step> steps;
    std::set<std::string> zipped;
    for (const Json& group : list_of(part, where_, "zip")) {
      if (!group.is_array()) reject(where_, "'zip' must be a list of lists of axes");
      Step step;
      for (const Json& name_json : group) {
        const auto name = as_text(name_json, where_, "an axis of 'zip'");
        if (!part["axes"].contains(name)) reject(where_, fmt::format("'zip' contains '{}', which has no values", name));
        if (!zipped.insert(name).second) reject(where_, fmt::format("'zip' contains '{}' twice", name));
        step.names.push_back(name);
        step.values.push_back(values(part, name));
        if (step.values.back().size() != step.values.front().size()) {
          reject(where_, fmt::format("zipped axes need the same number of values: '{}' has {}, '{}' has {}",
                                     step.names.front(), step.values.front().size(), name, step.values.back().size()));
        }
      }
      if (!step.names.empty()) steps.push_back(std::move(step));
    }
    for (const auto& [name, json] : part["axes"].items()) {
      if (!zipped.contains(name)) steps.push_back({{name}, {values(part, name)}});
    }
    return steps;
  }

  std::vector<Values> expand(const Json& part, const Constraints& constraints) const {
    std::vector<Values> points;
    const std::vector<Step> steps = steps_of(part);
    std::size_t total = 1;
    for (const Step& step : steps) total *= step.values.front().size();
    if (total > kMaxPoints) reject(where_, fmt::format("{} points; allowed: at most {}", total, kMaxPoints));
    for (std::size_t n = 0; n < total; ++n) {
      Values point;
      std::size_t rest = n;
      for (const Step& step : steps) {
        const std::size_t at = rest % step.values.front().size();
        rest /= step.values.front().size();
        for (std::size_t i = 0; i < step.names.size(); ++i) {
          point[step.names[i]] = axes_.axis(step.names[i]).read(step.values[i][at]);
        }
      }
      if (constraints.allow(point)) points.push_back(std::move(point));
    }
    return points;
  }

  /// Adds the searches that begin at a part's points. A member's axis that the part itself sets is not searched.
  void add_searches(const Json& part, const Constraints& constraints, std::vector<Search>& searches) const {
    const Json& wanted = part["search"];
    allow_only(wanted, where_ + " search", {"goal", "seconds", "axes", "start"});
    const std::string goal = as_text(wanted.value("goal", Json(info_->entry().rate)), where_, "search.goal");
    std::vector<std::string> goals;
    for (const Figure& figure : info_->entry().figures) {
      if (figure.better == Better::higher && !figure.distribution) goals.push_back(figure.name);
    }
    if (std::find(goals.begin(), goals.end(), goal) == goals.end()) {
      reject(where_, fmt::format("invalid value '{}' for search.goal; allowed: {}", goal, fmt::join(goals, ", ")));
    }
    const Json seconds = wanted.value("seconds", Json(3));
    if (!seconds.is_number() || !(seconds > 0) || seconds > 3600) {
      reject(where_,
             fmt::format("invalid value {} for search.seconds; allowed: more than 0, up to 3600", seconds.dump()));
    }
    std::vector<AxisValues> of_all;
    const Json axes_json = wanted.value("axes", Json::object());
    for (const auto& [name, json] : axes_json.items()) of_all.push_back({name, values_of(axes_.axis(name), json)});
    Values given;
    const Json start_json = wanted.value("start", Json::object());
    for (const auto& [name, json] : start_json.items()) {
      if (!axes_json.contains(name) || part["axes"].contains(name)) {
        reject(where_,
               fmt::format("search.start: '{}' must be an axis of search.axes that the part does not set", name));
      }
      const std::vector<std::string> values = values_of(axes_.axis(name), json);
      if (values.size() != 1) reject(where_, fmt::format("search.start: '{}' needs one value", name));
      given[name] = axes_.axis(name).read(values.front());
    }
    for (const Values& start : expand(part, Constraints(info_, Json::array(), where_))) {
      Search search{start, goal, seconds, of_all,
                    [constraints](const Values& point) { return constraints.allow(point); }};
      const auto own = info_->entry().searching.members(start);
      std::copy_if(own.begin(), own.end(), std::back_inserter(search.free),
                   [&](const AxisValues& each) { return !axes_json.contains(each.axis); });
      std::erase_if(search.free, [&](const AxisValues& each) { return part["axes"].contains(each.axis); });
      if (find_start(search, given)) searches.push_back(std::move(search));
    }
  }

  /// Sets the start of a search: the given values and, on other axes, the default value if the search includes it, else
  /// the first value. If the constraints reject this point, axes are set to their first values one after another,
  /// starting with the axes of `given`. Returns false if the constraints allow none of these points.
  bool find_start(Search& search, const Values& given) const {
    const auto first = [&](const AxisValues& each) { return axes_.axis(each.axis).read(each.values.front()); };
    for (const AxisValues& each : search.free) {
      const Axis& axis = axes_.axis(each.axis);
      const bool tried = std::any_of(each.values.begin(), each.values.end(), [&](const std::string& text) {
        return axis.read(text) == axes_.value(search.start, axis.name);
      });
      if (!tried) search.start[axis.name] = first(each);
      if (const auto found = given.find(axis.name); found != given.end()) search.start[axis.name] = found->second;
    }
    std::vector<AxisValues> in_turn = search.free;
    std::ranges::stable_partition(in_turn, [&](const AxisValues& each) { return given.contains(each.axis); });
    for (const AxisValues& each : in_turn) {
      if (search.allowed(search.start)) break;
      search.start[each.axis] = first(each);
    }
    return search.allowed(search.start);
  }

  void check_zip(const Json& part, const Json& group, const std::string& text, const std::string& option) const {
    const std::string name = text.substr(0, text.find('='));
    if (!group.is_array() || std::find(group.begin(), group.end(), name) == group.end()) return;
    const std::size_t count = values(part, name).size();
    std::string others, example = option + " " + text;
    bool equal = true;
    for (const Json& other_json : group) {
      const auto other = other_json.get<std::string>();
      if (other == name || !part["axes"].contains(other)) continue;
      others += (others.empty() ? "" : ", ") + other;
      equal &= values(part, other).size() == count;
      example += fmt::format(" {} {}=…", option, other);
    }
    if (equal) return;
    throw BadInput(fmt::format("{} {}: the spec steps {} together with {} (zip); set each of them to {} value{}: {}",
                               option, text, name, others, count, count == 1 ? "" : "s", example));
  }

  std::shared_ptr<const ExperimentInfo> info_;
  const AxisTable& axes_;
  std::string where_;
};

}  // namespace

Spec load_spec(const std::filesystem::path& file, const Overrides& overrides) {
  Json document;
  try {
    document = Json::parse(std::ifstream(file));
  } catch (const Json::exception& error) {
    reject(file.string(), fmt::format("not valid JSON: {}", text_of(error)));
  }
  return parse_spec(std::move(document), file.string(), overrides);
}

Spec parse_spec(Json document, const std::string& where, const Overrides& overrides) {
  allow_only(document, where,
             {"name", "description", "experiment", "run", "capacity", "parts", "axes", "zip", "constraints"});
  std::set<std::string> options;
  const Json all = run_of(RunSettings{});
  for (const auto& [name, value] : all.items()) options.insert(name);
  allow_only(document.value("run", Json::object()), where + " run", options);
  if (!document.contains("parts")) {
    if (!document.contains("axes")) reject(where, "needs 'axes' or 'parts'");
    document["parts"] = Json::array({{{"axes", document["axes"]}, {"zip", document.value("zip", Json::array())}}});
    document.erase("axes");
    document.erase("zip");
  }
  if (!document["parts"].is_array() || document["parts"].empty()) reject(where, "'parts' must be a list of parts");
  for (const Json& part : document["parts"]) {
    allow_only(part, where + " part", {"name", "axes", "zip", "constraints", "search"});
    if (!part.contains("axes") || !part["axes"].is_object() || part["axes"].empty()) {
      reject(where, "every part needs a non-empty object 'axes'");
    }
  }
  Spec spec;
  const auto experiment = as_text(document.value("experiment", Json(kStandardExperiment)), where, "'experiment'");
  try {
    spec.info = std::make_shared<ExperimentInfo>(experiment);
  } catch (const BadInput& error) {
    throw error.from(fmt::format("spec {}: experiment", where));
  }
  const Parts parts(spec.info, where);
  for (const std::string& text : overrides.values) parts.replace(document["parts"], text, overrides.option);
  parts.check_zips(document["parts"], overrides);

  spec.name = as_text(document.value("name", Json(std::filesystem::path(where).stem().string())), where, "'name'");
  if (spec.name.empty() || spec.name.starts_with('.') || spec.name.find('/') != std::string::npos) {
    reject(where, fmt::format("invalid name '{}'; it must be usable in a folder's name", spec.name));
  }
  spec.description = as_text(document.value("description", Json("")), where, "'description'");
  for (std::size_t i = 0; i < document["parts"].size(); ++i) {
    const Json& part = document["parts"][i];
    try {
      parts.add(document, part, spec);
    } catch (const BadInput& error) {  // from an axis, which refers to itself as an option
      const std::string name = error.option().empty() ? "" : error.option().substr(2);
      const bool unknown = name == "axis";
      throw BadInput(
          error.from(fmt::format("spec {}: parts[{}]: {}", where, i, unknown ? name : "axis " + name)).what() +
          (unknown ? hint_for_experiment(*spec.info, document["parts"]) : ""));
    }
  }
  if (spec.points.empty() && spec.searches.empty()) reject(where, "the constraints leave no points");
  spec.document = std::move(document);
  return spec;
}

std::filesystem::path find_spec(const std::string& name_or_path) {
  namespace fs = std::filesystem;
  if (fs::is_regular_file(name_or_path)) return name_or_path;
  std::vector<fs::path> folders;
  if (const char* named = std::getenv("FEEDRATE_SPECS"); named != nullptr) {
    if (!fs::is_directory(named)) throw BadInput("$FEEDRATE_SPECS", named, "a folder of specs");
    folders.emplace_back(named);
  }
  const fs::path executable = fs::read_symlink("/proc/self/exe").parent_path();
  folders.emplace_back("experiments/specs");
  folders.push_back(executable / "../experiments/specs");        // in a bundle
  folders.push_back(executable / "../../../experiments/specs");  // in build/<preset>/bin
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) continue;
    if (fs::path file = folder / (name_or_path + ".json"); fs::is_regular_file(file)) return file;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().stem());
  }
  throw BadInput("SPEC", name_or_path, fmt::format("a file, or one of {}", fmt::join(names, ", ")));
}

}  // namespace feedrate
