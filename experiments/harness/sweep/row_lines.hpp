#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace feedrate {

/// The lines of a JSONL file, compressed (by gzip or xz) or not.
struct RowLines {
  std::vector<std::string> whole;  ///< lines that end with a newline
  std::string cut;                 ///< an incomplete last line, left by a kill
};

/// Throws BadInput if the file can't be read or its compressed data are damaged.
RowLines read_lines(const std::filesystem::path& file);

}  // namespace feedrate
