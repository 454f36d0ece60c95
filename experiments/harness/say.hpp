#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace feedrate {

/// Writes to stderr. Ignores write errors (closed pipe, full disk), so that the work continues.
template <class... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  const std::string line = fmt::format(text, std::forward<Values>(values)...);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace feedrate
