#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/harness/json.hpp"

namespace feedrate {

/// Appends rows to a JSONL file, with one write(2) and one fsync per row, so that neither a crash nor a kill can lose a
/// finished row.
class Recorder {
 public:
  /// Opens or creates the file, or opens a pipe or a device. An incomplete last line, left by a kill, is removed.
  /// Throws BadInput if the file cannot be written or another process is writing to it.
  explicit Recorder(std::filesystem::path file);
  ~Recorder();
  Recorder(Recorder&&) noexcept;
  Recorder& operator=(Recorder&&) = delete;
  void write(const Json& row);
  /// The rows that the file contained when it was opened.
  const std::vector<Json>& earlier() const { return earlier_; }

 private:
  /// Reads `earlier_`; returns the size of the file's complete lines in bytes.
  std::size_t read_earlier();

  std::filesystem::path file_;
  int descriptor_ = -1;
  std::vector<Json> earlier_;
};

/// The lines of a JSONL file, compressed (by gzip or xz) or not.
struct RowLines {
  std::vector<std::string> whole;  ///< lines that end with a newline
  std::string cut;                 ///< an incomplete last line, left by a kill
};

/// Throws BadInput if the file cannot be read or its compressed data are damaged.
RowLines read_lines(const std::filesystem::path& file);

}  // namespace feedrate
