#pragma once
#include <functional>
#include <string>
#include <vector>

#include "common/limits/limit_list.hpp"
#include "experiments/harness/json.hpp"

namespace feedrate {

/// The limits of one session. They are read in rounds: some before the first cell, further ones between cells.
class LimitReadings {
 public:
  /// `add` adds all of them to a list.
  using Add = std::function<void(LimitList&)>;

  /// Reads them until there are this many rounds.
  void read(Add add, unsigned rounds);
  /// Another round, if it costs little beside the time since the last.
  void read_if_due();
  /// A limit that an earlier run read.
  void know(const std::string& name, double value) { values_[name] = value; }

  /// Medians of the readings up to now. Of limits with one name, the one that was added first: the session's own GPU.
  const Limits& values() const { return values_; }
  unsigned rounds() const { return rounds_; }
  /// With all readings up to now.
  std::vector<Json> rows(const std::string& run_id, std::string_view device) const;

 private:
  void read_once();

  Add add_;
  LimitList list_;
  Limits values_;
  unsigned rounds_ = 0;
  std::uint64_t read_ns_ = 0, round_took_ns_ = 0;  // when the last round ended; how long it took
};

/// As in rows and the catalogue.
Json to_json(const Scope&);

}  // namespace feedrate
