#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/harness/json.hpp"

namespace feedrate {

/// Appends rows to a JSONL file, one write(2) and one fsync a row, so that neither a crash nor a kill can lose a
/// finished row or leave half of one behind a finished one.
class Recorder {
 public:
  /// Opens or creates the file, or opens a pipe or a device; half a last line, left by a kill, is cut off. Throws
  /// BadInput when it can't be written, or another process is writing to it.
  explicit Recorder(std::filesystem::path file);
  ~Recorder();
  Recorder(Recorder&&) noexcept;
  Recorder& operator=(Recorder&&) = delete;
  void write(const Json& row);
  /// The rows that the file held when it was opened.
  const std::vector<Json>& earlier() const { return earlier_; }

 private:
  /// Returns how many bytes of the file are whole lines.
  std::size_t read_earlier();

  std::filesystem::path file_;
  int descriptor_ = -1;
  std::vector<Json> earlier_;
};

}  // namespace feedrate
