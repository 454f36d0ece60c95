#include "common/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "common/error.hpp"

namespace feedrate {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 7> kSuffixes{{{"Ki", 1ull << 10},
                                                                               {"Mi", 1ull << 20},
                                                                               {"Gi", 1ull << 30},
                                                                               {"k", 1'000},
                                                                               {"M", 1'000'000},
                                                                               {"G", 1'000'000'000},
                                                                               {"", 1}}};
constexpr auto kAllowed = "a whole number, optionally followed by Ki, Mi, Gi, k, M or G";
constexpr std::uint64_t kMaxValues = 4096;  // per axis; a larger number is presumably a typing error

struct Range {
  std::uint64_t first, last, step;
};

/// Parses "a..b" or "a..b:step"; returns false if `text` is not a range.
bool parse_range(std::string_view option, std::string_view text, Range& range) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return false;
  const auto colon = text.find(':', dots);
  range.first = parse_count(option, text.substr(0, dots));
  range.last = parse_count(option, text.substr(dots + 2, colon == text.npos ? text.npos : colon - dots - 2));
  range.step = colon == text.npos ? 1 : parse_count(option, text.substr(colon + 1));
  if (range.first > range.last || range.step == 0 || (range.last - range.first) / range.step >= kMaxValues) {
    throw BadInput(std::string(option), std::string(text), "first..last[:step] with first <= last, step >= 1");
  }
  return true;
}

}  // namespace

std::uint64_t parse_count(std::string_view option, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end != text.data()) {
    const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
    for (const auto& [name, factor] : kSuffixes) {
      if (suffix == name && value <= UINT64_MAX / factor) return value * factor;
    }
  }
  throw BadInput(std::string(option), std::string(text), kAllowed);
}

double parse_number(std::string_view option, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    throw BadInput(std::string(option), std::string(text), "a number");
  }
  return value;
}

std::vector<std::string> expand_values(std::string_view option, std::string_view text) {
  std::vector<std::string> values;
  while (true) {
    const auto comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    if (item.empty()) throw BadInput(std::string(option), std::string(text), "values separated by single commas");
    const bool powers = item.starts_with("pow2:");
    if (powers) item.remove_prefix(5);
    Range range{};
    if (parse_range(option, item, range)) {
      if (powers && range.last > 40) throw BadInput(std::string(option), std::string(item), "exponents up to 40");
      for (auto v = range.first; v <= range.last; v += range.step) {
        values.push_back(std::to_string(powers ? std::uint64_t{1} << v : v));
      }
    } else if (powers) {
      throw BadInput(std::string(option), "pow2:" + std::string(item), "pow2:first..last[:step]");
    } else {
      values.emplace_back(item);
    }
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

std::string format_count(std::uint64_t value) {
  for (const auto& [name, factor] : {kSuffixes[2], kSuffixes[1], kSuffixes[0]}) {
    if (value >= factor && value % factor == 0) return fmt::format("{}{}", value / factor, name);
  }
  return std::to_string(value);
}

// A value that rounds up to the next prefix at three digits uses that prefix: 1 k, not 1e+03.
constexpr double kRoundsUp = 0.9995;

std::string format_si(double value) {
  constexpr std::array<std::pair<double, const char*>, 4> scales{{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}}};
  if (std::abs(value) >= kRoundsUp * 1e15) return fmt::format("{:.0f} T", value / 1e12);
  for (const auto& [factor, name] : scales) {
    if (std::abs(value) >= kRoundsUp * factor) return fmt::format("{:.3g}{}", value / factor, name);
  }
  return fmt::format("{:.3g} ", value);
}

std::string format_rate(double messages_per_second) {
  std::string text = format_si(messages_per_second);
  if (text.back() != ' ') text += ' ';
  return text + "msg/s";
}

std::string format_ns(double nanoseconds) {
  if (nanoseconds >= 999.5e9) return fmt::format("{:.0f} s", nanoseconds / 1e9);
  if (nanoseconds >= kRoundsUp * 1e9) return fmt::format("{:.3g} s", nanoseconds / 1e9);
  if (nanoseconds >= kRoundsUp * 1e6) return fmt::format("{:.3g} ms", nanoseconds / 1e6);
  if (nanoseconds >= kRoundsUp * 1e3) return fmt::format("{:.3g} µs", nanoseconds / 1e3);
  return fmt::format("{:.3g} ns", nanoseconds);
}

}  // namespace feedrate
