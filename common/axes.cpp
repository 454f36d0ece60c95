#include "common/axes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/units.hpp"
#include "common/utf8.hpp"

namespace feedrate {
namespace {

std::string key_of(const std::string& name, const Limited& limits = {}) {
  std::string key = limits.key.empty() ? name : limits.key;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
  return fmt::format("{}", std::get<double>(value));
}

double number_of(const Value& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*number);
  const auto* real = std::get_if<double>(&value);
  return real == nullptr ? 0 : *real;
}

Axis number_axis(const std::string& name, std::uint64_t standard, const Limited& limits, std::string help) {
  const auto read = [option = "--" + name, limits](const std::string& text) -> Value {
    const std::uint64_t value = parse_count(option, text);
    const auto number = static_cast<double>(value);
    if (number < limits.least || number > limits.most || value % limits.multiple_of != 0) {
      const std::string multiple = limits.multiple_of == 1 ? "" : fmt::format(", a multiple of {}", limits.multiple_of);
      throw BadInput(
          option, text,
          fmt::format("{} to {}{}", limits.least, format_count(static_cast<std::uint64_t>(limits.most)), multiple));
    }
    return value;
  };
  return {name, key_of(name, limits), std::move(help), standard, read, {}, limits.least, limits.most};
}

Axis real_axis(const std::string& name, double standard, const Limited& limits, std::string help) {
  const auto read = [option = "--" + name, limits](const std::string& text) -> Value {
    const double value = parse_number(option, text);
    if (!(value >= limits.least && value <= limits.most)) {
      throw BadInput(option, text, fmt::format("{} to {}", limits.least, limits.most));
    }
    return value;
  };
  return {name, key_of(name, limits), std::move(help), standard, read, {}, limits.least, limits.most};
}

Axis word_axis(const std::string& name, std::string standard, std::function<std::vector<std::string>()> words,
               std::string help) {
  const auto read = [option = "--" + name, words](const std::string& text) -> Value {
    const std::vector<std::string> allowed = words();
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
      throw BadInput(option, text, fmt::format("{}", fmt::join(allowed, ", ")));
    }
    return text;
  };
  return {name, key_of(name), std::move(help), std::move(standard), read, std::move(words)};
}

Axis text_axis(const std::string& name, std::string standard, std::function<void(const std::string&)> check,
               std::string help) {
  const auto read = [name, standard, check = std::move(check)](const std::string& text) -> Value {
    if (utf8_escaped(text) != text) throw BadInput("--" + name, utf8_escaped(text), "UTF-8");
    if (text != standard) check(text);
    return text;
  };
  return {name, key_of(name), std::move(help), std::move(standard), read, {}, 0, 0, true};
}

Axis raw_axis(const std::string& name, std::string standard, std::string help) {
  const auto read = [](const std::string& text) -> Value { return text; };
  return {name, key_of(name), std::move(help), std::move(standard), read, {}, 0, 0, true};
}

Values values_on(const std::vector<Axis>& axes, const Values& given) {
  Values values;
  for (const Axis& axis : axes) {
    const auto found = given.find(axis.name);
    values[axis.name] = found == given.end() ? axis.standard : found->second;
  }
  return values;
}

std::vector<Axis> joined(std::vector<Axis> axes, const std::vector<Axis>& more) {
  axes.insert(axes.end(), more.begin(), more.end());
  return axes;
}

}  // namespace feedrate
