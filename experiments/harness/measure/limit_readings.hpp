#pragma once
#include <functional>
#include <string>
#include <vector>

#include "common/limits/limit_list.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// The limits of one session. They are read in rounds: some before the first cell, more between cells.
class LimitReadings {
 public:
  /// Adds all limits to a list.
  using Add = std::function<void(LimitList&)>;

  /// Reads the limits until there are this many rounds.
  void read(Add add, unsigned rounds);
  /// Reads another round if it is short compared with the time since the last round.
  void read_if_due();
  /// Sets a limit that an earlier run read.
  void know(const std::string& name, double value) { values_[name] = value; }

  /// Medians of the readings so far. If several limits share a name, the first one added counts: that of the session's
  /// GPU.
  const Limits& values() const { return values_; }
  unsigned rounds() const { return rounds_; }
  /// Rows with all readings so far.
  std::vector<Json> rows(const std::string& run_id, std::string_view device) const;

 private:
  void read_once();

  Add add_;
  LimitList list_;
  Limits values_;
  unsigned rounds_ = 0;
  std::uint64_t read_ns_ = 0, round_took_ns_ = 0;  // end of the last round; its duration
};

/// The scope as in rows and the catalogue.
Json to_json(const Scope&);

}  // namespace feedrate
