#include "experiments/harness/measure/columns.hpp"

#include <algorithm>
#include <sstream>

namespace feedrate {

std::string shortened(const std::string& text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool continues =
        (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;  // continuation byte of a UTF-8 character
    if (continues) continue;
    if (++seen == columns) {
      std::size_t next = at + 1;
      while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
      return next == text.size() ? text : text.substr(0, at) + "…";
    }
  }
  return text;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns) {
  const auto width = [](const std::string& word) {
    return static_cast<std::size_t>(std::ranges::count_if(word, [](char c) { return (c & 0xC0) != 0x80; }));
  };
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
