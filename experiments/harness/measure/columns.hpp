#pragma once
#include <cstddef>
#include <string>

namespace feedrate {

/// What a terminal is taken to be wide, at most.
inline constexpr std::size_t kColumns = 80;

/// At most so many columns of the text; what is cut off becomes "…".
std::string shortened(const std::string& text, std::size_t columns);

/// The text in lines of at most so many columns, broken at spaces; all but the first are indented.
std::string wrapped(const std::string& text, std::size_t indent = 4, std::size_t columns = kColumns);

}  // namespace feedrate
