#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "experiments/harness/json.hpp"

namespace feedrate {

/// Settings for repeating a point beyond the requested number until its intervals are narrow enough.
struct Precision {
  bool wanted = false;
  double throughput_within = 0.02, latency_within = 0.05;  ///< half widths of the intervals, as shares of the means
  std::string percentile = "p99";                          ///< latency percentile: p50, p90, p99 or p999
  unsigned max_repetitions = 100;
  double time_limit = 60;  ///< seconds for all repetitions of a point
};

/// Settings for measuring a cell; the same for all cells of a sweep.
struct RunSettings {
  double seconds = 0.5;
  double warmup_seconds = 0.1;
  std::uint64_t messages = 0;  ///< replaces `seconds` if not 0
  std::uint64_t seed = 1;
  unsigned repetitions = 1;
  Precision precision = {};
  bool pin_threads = false;
  double watchdog_seconds = 10;
  double longest_pass_seconds = 0;     ///< time limit for a try of a search; 0: no limit
  unsigned limit_rounds = 5;           ///< readings of each limit before the first cell
  bool no_stages = false;              ///< do not record stage times
  bool keep_disturbed = false;         ///< count a repetition even if it was disturbed (machine_state.hpp)
  bool extend_warmup = true;           ///< until the rate is steady, to at most kMaxWarmups times its length
  bool compare_with_generator = true;  ///< a row near the load generator's own limit is invalid
  bool external_worker = false;
  bool traced = false;    ///< an activity recorder runs throughout, which adds a little overhead
  bool profiled = false;  ///< an attached profiler captures the timed phases
};
/// A warm-up that does not become steady ends after this many times the requested length.
inline constexpr unsigned kMaxWarmups = 5;

/// Visits the settings that a user can set, in order, with each option's name, bounds and help. Calls `visit.seconds`,
/// `.count`, `.share`, `.word` or `.flag` for each, with the field of `settings`.
template <class Settings, class Visit>
void for_each_option(Settings& settings, Visit&& visit) {
  visit.seconds("seconds", settings.seconds, 86400, "length of a cell's timed phase; 0 only with --messages");
  visit.seconds("warmup", settings.warmup_seconds, 3600,
                "untimed warm-up phase; extended up to five times until the rate is steady");
  visit.count("messages", settings.messages, 0, std::uint64_t{1} << 40,
              "end the timed phase after this many messages; 0 = after --seconds");
  visit.count("repetitions", settings.repetitions, 1, 1000, "repetitions of every point, in shuffled order");
  visit.count("seed", settings.seed, 0, std::uint64_t{1} << 40, "seed of the payloads and of the order of cells");
  visit.flag("until-precise", settings.precision.wanted,
             "repeat a point at least ten times, until its 95 % intervals are narrow enough");
  visit.share("throughput-within", settings.precision.throughput_within,
              "--until-precise: half width of the throughput interval");
  visit.share("latency-within", settings.precision.latency_within,
              "--until-precise: half width of the interval of --percentile");
  visit.word("percentile", settings.precision.percentile, {"p50", "p90", "p99", "p999"},
             "--until-precise: latency percentile");
  visit.count("most-repetitions", settings.precision.max_repetitions, 2, 1000,
              "--until-precise: maximum repetitions per point");
  visit.seconds("time-limit", settings.precision.time_limit, 86400,
                "--until-precise: time limit for all repetitions of a point");
  visit.flag("keep-disturbed", settings.keep_disturbed,
             "count repetitions in which the GPU's clock was throttled, or cores were stolen or shared, instead of "
             "repeating them");
  visit.count("floor-rounds", settings.limit_rounds, 0, 100,
              "readings of each limit before the first cell; a long run adds more. 0: none, for debuggers");
  visit.flag("no-stages", settings.no_stages, "do not record stage times, to measure the cost of recording them");
  visit.seconds("watchdog", settings.watchdog_seconds, 3600, "fail a cell after this long without a result");
  visit.flag("pin", settings.pin_threads, "pin producers and collectors to cores");
}

/// The settings by option name, as in a spec's `run`.
Json run_of(const RunSettings&);
/// The settings as in a run's row.
Json to_json(const RunSettings&);

}  // namespace feedrate
