#pragma once
#include <cstdint>
#include <string>

#include "experiments/json.hpp"

namespace feedrate {

/// How each cell is measured; the same for all cells of a sweep.
struct RunSettings {
  double seconds = 0.5;
  double warmup_seconds = 0.1;
  std::uint64_t messages = 0;  ///< instead of seconds, when not 0
  std::uint64_t seed = 1;
  unsigned repetitions = 1;
  bool until_precise = false;  ///< repetitions beyond that number, until the intervals are as narrow as follows
  double throughput_within = 0.02, latency_within = 0.05;  ///< half widths, as shares of the means
  std::string percentile = "p99";                          ///< of latency: p50, p90, p99 or p999
  unsigned most_repetitions = 30;
  double time_limit = 60;  ///< seconds of a point's repetitions together
  bool pin_threads = false;
  double watchdog_seconds = 10;
  bool no_stages = false;           ///< no stage times
  bool keep_disturbed = false;      ///< a repetition counts although something disturbed it (machine_state.hpp)
  bool compare_with_driver = true;  ///< a row near what the driver alone reaches is invalid
  bool external_worker = false;
  bool traced = false;  ///< a recorder of activities runs all the while, which costs a little
};
/// As a run's row has them.
Json to_json(const RunSettings&);

}  // namespace feedrate
