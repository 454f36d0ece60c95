#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/harness/measure/columns.hpp"
#include "experiments/harness/sweep/results.hpp"

namespace feedrate {

/// What tells a point from the others of its sweep: the values of axes that vary among them.
class Labels {
 public:
  Labels(const Kind&, const std::vector<Resolution>& points);
  std::string of(const Values&) const;

 private:
  const Kind& kind_;
  std::vector<std::string> varying_;  // names of axes
};

/// How far a sweep is, on stderr: one line a cell, the figures first, and below the reason where a cell is not ok. A
/// terminal shows at most 80 columns of it, and overwrites the line of a good cell by the next; a file has it whole.
class Progress {
 public:
  Progress(const Kind&, std::size_t cells, double seconds_per_cell);
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void before(const std::string& label);
  void after(const Json& row);
  /// Shows a line that belongs to no cell: on a terminal until the next line, elsewhere only when `keep` is called.
  void show_now(const std::string& line);
  void keep();
  /// Whatever is printed next begins a line of its own.
  void end();

 private:
  void show(const std::string& line, bool stays);

  const Kind& kind_;
  std::size_t cells_, done_ = 0;
  double per_cell_;
  std::uint64_t start_;
  std::size_t columns_;
  bool terminal_, open_ = false;  // a line that does not end yet
  std::string head_, label_;
};

/// One line where some of the points spin more threads than there are cores; else empty.
std::string crowded_text(const Kind&, const std::vector<Resolution>& points, unsigned cores);

}  // namespace feedrate
