#include "experiments/harness/measure/columns.hpp"

#include <algorithm>
#include <sstream>

namespace feedrate {

namespace {

/// Whether a UTF-8 character begins with this byte.
bool begins(char byte) { return (byte & 0xC0) != 0x80; }
std::size_t width(const std::string& text) { return static_cast<std::size_t>(std::ranges::count_if(text, begins)); }

}  // namespace

std::string shortened(const std::string& text, std::size_t columns) {
  if (width(text) <= columns) return text;
  std::size_t end = 0;
  for (std::size_t seen = 0; seen < columns; ++end) seen += begins(text[end]) ? 1 : 0;
  return text.substr(0, end - 1) + "…";
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns) {
  std::string lines, word;
  std::size_t column = 0;
  std::istringstream words(text);
  while (words >> word) {
    if (column != 0 && column + 1 + width(word) > columns) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column != 0) {
      lines += " ";
      ++column;
    }
    lines += word;
    column += width(word);
  }
  return lines;
}

}  // namespace feedrate
