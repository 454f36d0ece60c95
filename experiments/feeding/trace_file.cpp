#include "experiments/feeding/trace_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/error.hpp"
#include "common/units.hpp"

namespace feedrate {
namespace {

using Fields = std::map<std::string, std::string>;

[[noreturn]] void refuse(const std::string& file, std::size_t line, const std::string& why) {
  throw BadInput(fmt::format("--trace-file: '{}', line {}: {}", file, line, why));
}

Fields fields_of_json(const std::string& file, std::size_t number, const std::string& line) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) refuse(file, number, "not a JSON object");
  Fields fields;
  for (const auto& [name, value] : object.items())
    fields[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return fields;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    const auto first = cell.find_first_not_of(" \t\r\""), last = cell.find_last_not_of(" \t\r\"");
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

double number_in(const std::string& file, std::size_t line, const std::string& name, const std::string& text,
                 double most) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0) || value > most) {
    refuse(file, line, fmt::format("{} is '{}'; a number from 0 to {} is allowed", name, text, most));
  }
  return value;
}

/// Calls `each(line number, fields)` for every arrival.
template <class Each>
void for_each_line(const std::string& file, Each&& each) {
  std::ifstream stream(file);
  if (!stream) throw BadInput("--trace-file", file, "a CSV or JSONL file that can be read");
  std::vector<std::string> head;
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    if (line[first] == '{') {
      each(number, fields_of_json(file, number, line));
      continue;
    }
    const auto cells = cells_of(line);
    if (head.empty()) {
      head = cells;
      continue;
    }
    if (cells.size() != head.size())
      refuse(file, number, fmt::format("{} values; the head has {}", cells.size(), head.size()));
    Fields fields;
    for (std::size_t i = 0; i < head.size(); ++i) fields[head[i]] = cells[i];
    each(number, fields);
  }
}

}  // namespace

TraceFile read_trace(const std::string& file) {
  constexpr double kLongest = 86400, kMostPayload = 64 << 20, kLowestPriority = 7;
  TraceFile read;
  Schedule& trace = read.schedule;
  std::uint64_t first = 0;
  for_each_line(file, [&](std::size_t line, const Fields& fields) {
    if (!fields.contains("time")) refuse(file, line, "no time; allowed are time, payload, priority, workload");
    const auto time = static_cast<std::uint64_t>(number_in(file, line, "time", fields.at("time"), 1e10) * 1e9);
    if (trace.due_ns.empty()) first = time;
    if (time < first || (!trace.due_ns.empty() && time - first < trace.due_ns.back())) {
      refuse(file, line, "its time is before the previous line's");
    }
    if (static_cast<double>(time - first) > kLongest * 1e9) refuse(file, line, "more than a day behind the first");
    if (trace.size() == kMostArrivals) refuse(file, line, fmt::format("more than {} arrivals", kMostArrivals));
    const auto optional = [&](const char* name, auto& values, double most) {
      if (fields.contains(name) != (values.size() == trace.size()) && trace.size() != 0) {
        refuse(file, line, fmt::format("{} must stand in all lines, or in none", name));
      }
      if (!fields.contains(name)) return;
      using Value = typename std::decay_t<decltype(values)>::value_type;
      values.push_back(static_cast<Value>(number_in(file, line, name, fields.at(name), most)));
    };
    optional("payload", trace.payloads, kMostPayload);
    optional("priority", trace.priorities, kLowestPriority);
    if (const auto named = fields.find("workload"); named != fields.end() && !named->second.empty()) {
      if (!read.workload.empty() && read.workload != named->second) {
        refuse(file, line, fmt::format("workload '{}' after '{}'; a run has one", named->second, read.workload));
      }
      read.workload = named->second;
    }
    trace.due_ns.push_back(time - first);
  });
  if (trace.due_ns.empty()) throw BadInput("--trace-file", file, "a file with at least one arrival");
  trace.seconds = static_cast<double>(trace.due_ns.back()) * 1e-9;
  return read;
}

}  // namespace feedrate
