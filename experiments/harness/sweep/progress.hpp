#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experiments/harness/measure/columns.hpp"
#include "experiments/harness/measure/experiment.hpp"
#include "experiments/harness/sweep/results.hpp"

namespace feedrate {

/// Short labels that distinguish the points of a sweep by the values of the axes that vary.
class Labels {
 public:
  Labels(const ExperimentInfo&, const std::vector<Resolution>& points);
  std::string of(const Values&) const;

 private:
  const ExperimentInfo& info_;
  std::vector<std::string> varying_;  // names of axes
};

/// Progress of a sweep on stderr: one line per cell, with the figures first, followed by the reason if the cell is not
/// ok. On a terminal a line has at most 80 columns, and the next line overwrites the line of an ok cell; in a file all
/// lines are complete.
class Progress {
 public:
  Progress(const ExperimentInfo&, std::size_t cells, double seconds_per_cell);
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void before(const std::string& label);
  void after(const Json& row);
  /// Shows a line that belongs to no cell: on a terminal until the next line, elsewhere only if `keep` is called.
  void show_now(const std::string& line);
  void keep();
  /// Makes the next output start on a new line.
  void end();

 private:
  void show(const std::string& line, bool stays);

  const ExperimentInfo& info_;
  std::size_t cells_, done_ = 0;
  double per_cell_;
  std::uint64_t start_;
  std::size_t columns_;
  bool terminal_;
  bool open_ = false;  // the current line is not terminated yet
  std::string head_, label_;
};

/// A warning if some of the points need more spinning threads than there are cores; else empty.
std::string crowded_text(const ExperimentInfo&, const std::vector<Resolution>& points, unsigned cores);

/// Status and reason of a row that is not ok. A disturbed cell is measured again unless its point has been given up.
std::string verdict_text(const Json& row);

/// The experiment's own summary; by default, the best variant for each task, or the best variant and the runner-up for
/// each headline figure.
std::unique_ptr<Summary> summary_of(const ExperimentInfo&);

}  // namespace feedrate
