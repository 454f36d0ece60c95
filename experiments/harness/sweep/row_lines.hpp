#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace feedrate {

/// The lines of a JSONL file, compressed (by gzip or xz) or not.
struct RowLines {
  std::vector<std::string> whole;  ///< those that end
  std::string cut;                 ///< what lies behind them: a kill left it
};

/// Throws BadInput when the file can't be read, or its compression is broken.
RowLines read_lines(const std::filesystem::path& file);

}  // namespace feedrate
