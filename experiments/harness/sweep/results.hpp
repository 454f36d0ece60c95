#pragma once
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "experiments/harness/measure/session.hpp"
#include "experiments/harness/sweep/recorder.hpp"

namespace feedrate {

/// A results directory that is being written: spec.json, and rows.jsonl with the limits first.
class Results {
 public:
  /// Creates the directory with `document` as its spec.json, unless `resume` is set. Throws BadInput if it cannot be
  /// written.
  Results(const std::filesystem::path& directory, const Json& document, bool resume);
  /// Writes a row, preceded by the run's row if it is the first.
  void write(const Json& row);
  /// The rows of earlier runs.
  const std::vector<Json>& earlier() const { return recorder_.earlier(); }
  /// IDs of the earlier rows of a kind, except interrupted cells, which are not measurements yet.
  std::set<std::string> done(const std::string& kind) const;
  /// Sets the session's limits, from the rows of earlier runs, from `known` limit rows, or by measuring them now for
  /// these points. Later rows belong to this run. A run that measures nothing writes no row.
  void begin(Session&, std::span<const Resolution>, const std::vector<Json>& known = {});
  /// Writes the limits again if more readings were added during the run. The last row of a limit has all its readings.
  void end(const Session&);
  /// Edits a row before it is written.
  using Label = std::function<void(Json&)>;
  /// Measures one repetition under supervision.
  Json measure(
      Session&, const Resolution&, unsigned repetition, const std::function<void()>& restart,
      const Label& label = [](Json&) {});
  /// Runs `body`, which measures the cell for at most one repetition. If the cell cannot be stopped (its kernel never
  /// ends), writes a failed row for it; then `restart` replaces the process, or the process exits.
  void supervise(Session&, const Resolution&, unsigned repetition, const std::function<void()>& restart, const Label&,
                 const std::function<void()>& body);

 private:
  std::filesystem::path directory_;
  Recorder recorder_;
  Json run_;  // not written yet
};

/// Writes a file atomically, even if the process is killed. Throws BadInput if the file cannot be written.
void write_whole(const std::filesystem::path&, const Json& document);

/// Hash of the bytes of a folder's spec.json, as 16 hexadecimal digits.
std::string spec_hash(const std::filesystem::path& directory);

/// Resolves the points and removes duplicates, which would give the same measurement.
std::vector<Resolution> distinct(const std::vector<Values>&, Session&);

}  // namespace feedrate
