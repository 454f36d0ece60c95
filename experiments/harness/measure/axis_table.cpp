#include "experiments/harness/measure/axis_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/error.hpp"

namespace feedrate {

void AxisTable::add(const std::string& owner, const std::vector<Axis>& axes) {
  for (const Axis& axis : axes) {
    const auto known =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) { return each.axis.name == axis.name; });
    if (known == entries_.end()) {
      entries_.push_back({axis, owner.empty() ? std::vector<std::string>{} : std::vector{owner}});
      continue;
    }
    const bool same = known->axis.help == axis.help && known->axis.standard == axis.standard &&
                      known->axis.least == axis.least && known->axis.most == axis.most;
    if (known->owners.empty() || owner.empty() || !same) {
      throw BadInput("the axis '" + axis.name + "' of " + (owner.empty() ? "the experiment" : owner) +
                     " differs from that of " + (known->owners.empty() ? "the experiment" : known->owners.front()) +
                     "; rename one of them");
    }
    known->owners.push_back(owner);
  }
}

const AxisTable::Entry& AxisTable::get(const std::string& name) const {
  std::vector<std::string> names;
  for (const Entry& each : entries_) {
    if (each.axis.name == name) return each;
    names.push_back(each.axis.name);
  }
  throw BadInput("--axis", name, fmt::format("one of {}", fmt::join(names, ", ")));
}

Value AxisTable::value(const Values& values, const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? axis(name).standard : found->second;
}

Json AxisTable::params(const Values& values) const {
  Json params = Json::object();
  for (const Entry& each : entries_) {
    if (const auto found = values.find(each.axis.name); found != values.end()) {
      params[each.axis.key] = to_json(found->second);
    }
  }
  return params;
}

Values AxisTable::values(const Json& params) const {
  Values values;
  for (const Entry& each : entries_) {
    const auto found = params.find(each.axis.key);
    if (found == params.end()) continue;
    if (found->is_string()) {
      values[each.axis.name] = found->get<std::string>();
    } else if (std::holds_alternative<double>(each.axis.standard)) {
      values[each.axis.name] = found->get<double>();
    } else {
      values[each.axis.name] = found->get<std::uint64_t>();
    }
  }
  return values;
}

Json to_json(const Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

bool is_none(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text == "none" : number_of(value) == 0;
}

Json names_of(const std::vector<Axis>& axes) {
  Json names = Json::array();
  for (const Axis& axis : axes) names.push_back(axis.name);
  return names;
}

}  // namespace feedrate
