#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

#include "experiments/harness/json.hpp"

namespace feedrate {

/// Repetitions beyond their number, until the intervals are narrow enough.
struct Precision {
  bool wanted = false;
  double throughput_within = 0.02, latency_within = 0.05;  ///< half widths, as shares of the means
  std::string percentile = "p99";                          ///< of latency: p50, p90, p99 or p999
  unsigned most_repetitions = 100;
  double time_limit = 60;  ///< seconds of a point's repetitions together
};

/// How each cell is measured; the same for all cells of a sweep.
struct RunSettings {
  double seconds = 0.5;
  double warmup_seconds = 0.1;
  std::uint64_t messages = 0;  ///< instead of seconds, when not 0
  std::uint64_t seed = 1;
  unsigned repetitions = 1;
  Precision precision = {};
  bool pin_threads = false;
  double watchdog_seconds = 10;
  double longest_pass_seconds = 0;  ///< a try of a search that takes longer is given up; 0: none is
  unsigned limit_rounds = 5;        ///< how often each limit is read before the first cell
  bool no_stages = false;           ///< no stage times
  bool keep_disturbed = false;      ///< a repetition counts although something disturbed it (machine_state.hpp)
  bool extend_warmup = true;        ///< while the rate is not steady, up to kMostWarmups times
  bool compare_with_driver = true;  ///< a row near what the driver alone reaches is invalid
  bool external_worker = false;
  bool traced = false;    ///< a recorder of activities runs all the while, which costs a little
  bool profiled = false;  ///< an attached profiler captures the timed phases
};
/// A warm-up that does not become steady lasts so many times as long as was asked for.
inline constexpr unsigned kMostWarmups = 5;

/// Those that a user may set, once and in order: their options' names, what is allowed, and what they are. Calls
/// `visit.seconds`, `.count`, `.share`, `.word` or `.flag` for each, with the field of `settings`.
template <class Settings, class Visit>
void for_each_option(Settings& settings, Visit&& visit) {
  visit.seconds("seconds", settings.seconds, 86400, "timed phase of a cell; 0 only with --messages");
  visit.seconds("warmup", settings.warmup_seconds, 3600,
                "untimed phase before it; up to five times as long until the rate is steady");
  visit.count("messages", settings.messages, 0, std::uint64_t{1} << 40,
              "timed phase ends after so many messages instead; 0 = by seconds");
  visit.count("repetitions", settings.repetitions, 1, 1000, "repetitions of every point, in shuffled order");
  visit.count("seed", settings.seed, 0, std::uint64_t{1} << 40, "seed of the payloads and of the order of cells");
  visit.flag("until-precise", settings.precision.wanted,
             "repeat a point, ten times at least, until its 95 % intervals are narrow enough");
  visit.share("throughput-within", settings.precision.throughput_within,
              "--until-precise: half width of throughput's interval");
  visit.share("latency-within", settings.precision.latency_within,
              "--until-precise: half width of the percentile's interval");
  visit.word("percentile", settings.precision.percentile, {"p50", "p90", "p99", "p999"}, "of latency");
  visit.count("most-repetitions", settings.precision.most_repetitions, 2, 1000,
              "--until-precise: most repetitions of a point");
  visit.seconds("time-limit", settings.precision.time_limit, 86400,
                "--until-precise: most time for all repetitions of a point");
  visit.flag("keep-disturbed", settings.keep_disturbed,
             "count repetitions although the GPU's clock was throttled, or cores were stolen or shared; else they are "
             "repeated");
  visit.count("floor-rounds", settings.limit_rounds, 0, 100,
              "how often each limit is read before the first cell; a long run reads them on. 0: none, for debuggers");
  visit.flag("no-stages", settings.no_stages, "record no stage times, to see what recording them costs");
  visit.seconds("watchdog", settings.watchdog_seconds, 3600, "end a cell as failed after this long without a result");
  visit.flag("pin", settings.pin_threads, "bind producers and collectors to cores");
}

/// Their values by option, as a spec's `run` has them.
Json run_of(const RunSettings&);
/// As a run's row has them.
Json to_json(const RunSettings&);

}  // namespace feedrate
