#pragma once
#include <cstddef>
#include <string>

namespace feedrate {

/// Assumed maximum width of a terminal.
inline constexpr std::size_t kColumns = 80;

/// The text, shortened to at most this many columns; "…" replaces the rest.
std::string shortened(const std::string& text, std::size_t columns);

/// The text, broken at spaces into lines of at most this many columns; all lines except the first are indented.
std::string wrapped(const std::string& text, std::size_t indent = 4, std::size_t columns = kColumns);

}  // namespace feedrate
