#include "experiments/harness/measure/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/hash.hpp"
#include "common/units.hpp"

namespace feedrate {

ExperimentInfo::ExperimentInfo(const std::string& name)
    : name_(name), entry_(Experiments::instance().get("--experiment", name)), axes_(entry_.axes()) {}

std::string ExperimentInfo::variant(const Values& values) const {
  std::string text;
  for (const std::string& name : entry_.variant) {
    const Value value = axes_.value(values, name);
    if (!is_none(value)) text += (text.empty() ? "" : " + ") + text_of(value);
  }
  return text;
}

std::string ExperimentInfo::text(const Values& values) const { return variant(values) + settings(values); }

std::string ExperimentInfo::settings(const Values& values, const std::set<std::string>& without) const {
  std::string text;
  for (const auto& [axis, owners] : axes_.entries()) {
    const auto found = values.find(axis.name);
    if (found == values.end() || is_none(found->second) || without.contains(axis.name)) continue;
    if (std::ranges::find(entry_.variant, axis.name) != entry_.variant.end()) continue;
    const bool always = std::ranges::find(entry_.shown, axis.name) != entry_.shown.end();
    if (!always && found->second == axis.standard) continue;
    const auto* number = std::get_if<std::uint64_t>(&found->second);
    text += fmt::format(" {}={}", axis.name, number != nullptr ? format_count(*number) : text_of(found->second));
  }
  return text;
}

std::string ExperimentInfo::text(const std::string& figure, double value) const {
  const std::string name = figure.substr(0, figure.find('.'));
  for (const Figure& each : entry_.figures) {
    if (each.name != name) continue;
    if (each.unit == "ns") return format_ns(value);
    if (each.unit == "1/s") return format_si(value) + "/s";
    const std::string text = format_si(value);
    return text + (each.unit.starts_with('B') || text.ends_with(' ') ? "" : " ") + each.unit;
  }
  return format_si(value);
}

std::vector<std::pair<std::string, std::string>> ExperimentInfo::lines(const Json& row) const {
  if (entry_.terminal.lines) return entry_.terminal.lines(*this, row);
  std::vector<std::pair<std::string, std::string>> all;
  const Json bounds = row.value("bounds", Json::object());
  for (const Figure& figure : entry_.figures) {
    const std::string value = figure.distribution ? figure.name + ".p50" : figure.name;
    const auto found = figure_of(row, value);
    if (!found) continue;
    std::string line = text(figure.name, *found);
    if (figure.distribution) {
      line.insert(0, "p50 ");
      for (const char* part : {"p99", "max"}) {
        line += fmt::format(", {} {}", part, text(figure.name, *figure_of(row, figure.name + "." + part)));
      }
    }
    if (bounds.contains(figure.name)) {
      line += fmt::format("; {:.2f} × {}", bounds[figure.name]["ratio"].get<double>(),
                          expression_of(bounds[figure.name]["bound"]).text());
    }
    all.emplace_back(figure.name, std::move(line));
  }
  return all;
}

std::string row_id(const Json& params, unsigned repetition) {
  return fmt::format("{:016x}", hash64(params.dump() + "#" + std::to_string(repetition)));
}

std::optional<double> figure_of(const Json& row, const std::string& name) {
  const auto figures = row.find("figures");
  if (figures == row.end()) return std::nullopt;
  const auto dot = name.find('.');
  const auto found = figures->find(name.substr(0, dot));
  if (found == figures->end()) return std::nullopt;
  if (dot == name.npos) return found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
  const auto part = found->find(name.substr(dot + 1));
  return part == found->end() ? std::nullopt : std::optional(part->get<double>());
}

}  // namespace feedrate
