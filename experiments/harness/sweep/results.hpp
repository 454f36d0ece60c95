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

/// A results directory while it is written: spec.json, and rows.jsonl with the limits first.
class Results {
 public:
  /// Makes the directory with `document` as its spec.json, unless `resume`. Throws BadInput when it can't be written.
  Results(const std::filesystem::path& directory, const Json& document, bool resume);
  /// The run's row goes ahead of the first.
  void write(const Json& row);
  /// The rows that earlier runs left.
  const std::vector<Json>& earlier() const { return recorder_.earlier(); }
  /// Ids of those of a kind, without cells that Ctrl-C cut short: these are no measurements yet.
  std::set<std::string> done(const std::string& kind) const;
  /// Gives the session its limits, from the rows of earlier runs or measured now for these points. From then on each
  /// row is one of this run; a run that measures nothing leaves no row.
  void begin(Session&, std::span<const Resolution>);
  /// The limits once more, if they were read through the run: the last row of a limit has all its readings.
  void end(const Session&);
  /// Measures one repetition. A cell that can't be stopped (a kernel that never ends) gets its failed row; then
  /// `restart` replaces the process, or the process ends. `label` edits the row in either case.
  Json measure(
      Session&, const Resolution&, unsigned repetition, const std::function<void()>& restart,
      const std::function<void(Json&)>& label = [](Json&) {});

 private:
  std::filesystem::path directory_;
  Recorder recorder_;
  Json run_;  // not written yet
};

/// Writes a file that is there whole or not at all, whenever this is killed. Throws BadInput when it can't be written.
void write_whole(const std::filesystem::path&, const Json& document);

/// What tells a folder's spec.json from another, byte by byte: 16 hexadecimal digits.
std::string spec_hash(const std::filesystem::path& directory);

/// Points that come to the same measurement are measured once.
std::vector<Resolution> distinct(const std::vector<Values>&, Session&);

}  // namespace feedrate
