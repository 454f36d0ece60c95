#include "experiments/harness/load/schedule.hpp"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/edit_distance.hpp"
#include "common/error.hpp"
#include "common/units.hpp"

namespace feedrate {
namespace {

using Fields = std::map<std::string, std::string>;

[[noreturn]] void reject(const std::string& file, std::size_t line, const std::string& why) {
  throw BadInput(fmt::format("--trace-file: '{}', line {}: {}", file, line, why));
}

/// Rejects a column whose name is a misspelt known name. Other columns are ignored. `has` returns whether the file has
/// a column of that name.
template <class Has>
void check_name(const std::string& file, std::size_t line, const std::string& name, const Has& has) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) { return std::tolower(letter); });
  for (const std::string known : {"time", "payload", "priority", "workload"}) {
    const bool slip = name != known && 4 * edit_distance(lower, known) <= known.size();
    if (slip && !has(known)) reject(file, line, fmt::format("unknown column '{}'; did you mean {}?", name, known));
  }
}

Fields fields_of_json(const std::string& file, std::size_t number, const std::string& line) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) reject(file, number, "not a JSON object");
  Fields fields;
  for (const auto& [name, value] : object.items()) {
    check_name(file, number, name, [&](const std::string& known) { return object.contains(known); });
    fields[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return fields;
}

double number_in(const std::string& file, std::size_t line, const std::string& name, const std::string& text,
                 double most, bool whole = false) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0) || value > most || (whole && value != std::floor(value))) {
    reject(file, line,
           fmt::format("invalid {} '{}'; allowed: a {} from 0 to {}{}", name, text, whole ? "whole number" : "number",
                       most, whole ? "" : ", with a decimal point"));
  }
  return value;
}

/// Parses a CSV file (RFC 4180) line by line with libcsv, and assigns the header's names to the values.
class CsvLines {
 public:
  explicit CsvLines(std::string file) : file_(std::move(file)) {
    csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL);
  }
  CsvLines(const CsvLines&) = delete;
  ~CsvLines() { csv_free(&parser_); }

  /// Returns the records that end in this line: one, or none if the line is blank or ends within a quoted value.
  std::vector<Fields> records_in(std::size_t number, std::string line) {
    number_ = number;
    line += '\n';
    records_.clear();
    if (csv_parse(&parser_, line.data(), line.size(), on_value, on_record, this) != line.size()) {
      reject(file_, number_, "a quote within a value; double it, and put the value in quotes");
    }
    std::vector<Fields> named;
    for (const auto& values : records_) {
      if (head_.empty()) {
        take_head(values);
      } else {
        named.push_back(with_names(values));
      }
    }
    return named;
  }
  void end() {
    if (csv_fini(&parser_, on_value, on_record, this) != 0) reject(file_, number_, "unterminated quote");
  }

 private:
  static void on_value(void* value, std::size_t size, void* self) {
    static_cast<CsvLines*>(self)->record_.emplace_back(static_cast<const char*>(value), size);
  }
  static void on_record(int, void* self) {
    auto& lines = *static_cast<CsvLines*>(self);
    lines.records_.push_back(std::exchange(lines.record_, {}));
  }
  void take_head(const std::vector<std::string>& names) {
    for (const char other : {';', '\t'}) {
      if (names.size() == 1 && names[0].find(other) != std::string::npos) {
        reject(file_, number_,
               fmt::format("values are separated by {}; use commas, and a decimal point in numbers",
                           other == ';' ? "semicolons" : "tabs"));
      }
    }
    for (const std::string& name : names) {
      if (std::ranges::count(names, name) != 1) reject(file_, number_, fmt::format("column '{}' appears twice", name));
      check_name(file_, number_, name, [&](const std::string& known) { return std::ranges::count(names, known) != 0; });
    }
    head_ = names;
  }
  Fields with_names(const std::vector<std::string>& values) const {
    if (values.size() != head_.size())
      reject(file_, number_, fmt::format("{} values; the header has {}", values.size(), head_.size()));
    Fields fields;
    for (std::size_t i = 0; i < head_.size(); ++i) fields[head_[i]] = values[i];
    return fields;
  }

  std::string file_;
  csv_parser parser_{};
  std::size_t number_ = 0;
  std::vector<std::string> head_, record_;
  std::vector<std::vector<std::string>> records_;
};

/// Calls `each(line number, fields)` for every arrival. The first character of the first line distinguishes JSONL from
/// CSV.
template <class Each>
void for_each_line(const std::string& file, Each&& each) {
  std::ifstream stream(file);
  if (!stream) throw BadInput("--trace-file", file, "a readable CSV or JSONL file");
  if (!std::filesystem::is_regular_file(file)) {
    throw BadInput("--trace-file", file, "a regular file, because it is read more than once");
  }
  CsvLines csv(file);
  std::optional<bool> json;
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    if (++number == 1) {
      if (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF"))
        reject(file, 1, "the file is UTF-16; use UTF-8");
      if (line.starts_with("\x1F\x8B") ||
          line.starts_with("\xFD"
                           "7zXZ") ||
          line.starts_with("\x28\xB5\x2F\xFD")) {
        reject(file, 1, "the file is compressed; use plain CSV or JSONL");
      }
      if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // byte order mark, written by spreadsheets
    }
    if (line.find('\0') != line.npos) reject(file, number, "the line has a NUL byte; use plain text");
    const auto first = line.find_first_not_of(" \t\r");
    if (!json && first != std::string::npos) json = line[first] == '{';
    if (json == false) {
      for (const Fields& fields : csv.records_in(number, line)) each(number, fields);
    } else if (first != std::string::npos) {
      each(number, fields_of_json(file, number, line));
    }
  }
  csv.end();
}

}  // namespace

TraceFile read_trace(const std::string& file) {
  constexpr double kLongest = 86400, kMaxPayload = 64 << 20, kLowestPriority = 7;
  TraceFile read;
  Schedule& trace = read.schedule;
  std::uint64_t first = 0;
  for_each_line(file, [&](std::size_t line, const Fields& fields) {
    if (!fields.contains("time")) reject(file, line, "missing time; allowed: time, payload, priority, workload");
    const auto time = static_cast<std::uint64_t>(number_in(file, line, "time", fields.at("time"), 1e10) * 1e9);
    if (trace.due_ns.empty()) first = time;
    if (time < first || (!trace.due_ns.empty() && time - first < trace.due_ns.back())) {
      reject(file, line, "the time is before that of the previous line");
    }
    if (static_cast<double>(time - first) > kLongest * 1e9)
      reject(file, line, "the time is more than a day after the first");
    if (trace.size() == kMaxArrivals) reject(file, line, fmt::format("more than {} arrivals", kMaxArrivals));
    const auto optional = [&](const char* name, auto& values, double most) {
      if (fields.contains(name) != (values.size() == trace.size()) && trace.size() != 0) {
        reject(file, line, fmt::format("{} must be in all lines or in none", name));
      }
      if (!fields.contains(name)) return;
      using Value = typename std::decay_t<decltype(values)>::value_type;
      values.push_back(static_cast<Value>(number_in(file, line, name, fields.at(name), most, true)));
    };
    optional("payload", trace.payloads, kMaxPayload);
    optional("priority", trace.priorities, kLowestPriority);
    if (const auto named = fields.find("workload"); named != fields.end() && !named->second.empty()) {
      if (!read.workload.empty() && read.workload != named->second) {
        reject(file, line,
               fmt::format("workload '{}' after '{}'; a run has only one workload", named->second, read.workload));
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
