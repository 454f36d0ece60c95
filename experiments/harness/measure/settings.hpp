#pragma once
#include <cstdint>
#include <string>
#include <vector>

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
  bool extend_warmup = true;           ///< extend the warm-up until the rate is steady
  bool compare_with_generator = true;  ///< a row near the load generator's own limit is invalid
  bool external_worker = false;
  bool watch_gpu = true;  ///< sample the GPU's state during the timed phase, which takes tens of milliseconds
  bool traced = false;    ///< an activity recorder runs throughout, which adds a little overhead
  bool profiled = false;  ///< an attached profiler captures the timed phases
};
/// A warm-up that does not become steady ends after this many times the requested length, or after twice as many if the
/// rate certainly still has a trend then.
inline constexpr unsigned kMaxWarmups = 5;

/// The settings for one of many short measurements, without what only a full row needs.
inline RunSettings brief(RunSettings settings) {
  settings.no_stages = true;
  settings.extend_warmup = settings.compare_with_generator = false;
  return settings;
}

/// Kinds of settings, with their bounds.
struct SecondsOption {
  double most, least = 0;
};
struct CountOption {
  std::uint64_t least, most;
};
struct ShareOption {};
struct WordOption {
  std::vector<std::string> words;
};
struct FlagOption {};

/// Visits the settings that a user can set, in order. Calls `visit` for each with the option's name, the field of
/// `settings`, the kind and the help.
template <class Settings, class Visit>
void for_each_option(Settings& settings, Visit&& visit) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  auto& precision = settings.precision;
  visit("seconds", settings.seconds, SecondsOption{86400}, "length of a cell's timed phase; 0 only with --messages");
  visit("warmup", settings.warmup_seconds, SecondsOption{3600},
        "untimed warm-up phase; extended until the rate is steady, up to five times (ten if it certainly has a trend)");
  visit("messages", settings.messages, CountOption{0, kMany},
        "end the timed phase after this many messages; 0 = after --seconds");
  visit("repetitions", settings.repetitions, CountOption{1, 1000}, "repetitions of every point, in shuffled order");
  visit("seed", settings.seed, CountOption{0, kMany}, "seed of the payloads and of the order of cells");
  visit("until-precise", precision.wanted, FlagOption{},
        "repeat a point at least ten times, until its 95 % intervals are narrow enough");
  visit("throughput-within", precision.throughput_within, ShareOption{},
        "--until-precise: half width of the throughput interval");
  visit("latency-within", precision.latency_within, ShareOption{},
        "--until-precise: half width of the interval of --percentile");
  visit("percentile", precision.percentile, WordOption{{"p50", "p90", "p99", "p999"}},
        "--until-precise: latency percentile");
  visit("most-repetitions", precision.max_repetitions, CountOption{2, 1000},
        "--until-precise: maximum repetitions per point");
  visit("time-limit", precision.time_limit, SecondsOption{86400},
        "--until-precise: time limit for all repetitions of a point");
  visit("keep-disturbed", settings.keep_disturbed, FlagOption{},
        "count repetitions in which other processes took cores or the CPU quota was used up, instead of repeating "
        "them");
  visit("floor-rounds", settings.limit_rounds, CountOption{0, 100},
        "readings of each limit before the first cell; a long run adds more. 0: none, for debuggers");
  visit("no-stages", settings.no_stages, FlagOption{},
        "do not record stage times, to measure the cost of recording them");
  visit("watchdog", settings.watchdog_seconds, SecondsOption{3600, 0.1},
        "fail a cell after this long without a result");
  visit("pin", settings.pin_threads, FlagOption{}, "pin producers and collectors to cores");
}

/// The settings by option name, as in a spec's `run`.
inline Json run_of(const RunSettings& settings) {
  Json json = Json::object();
  for_each_option(settings, [&](const char* name, const auto& value, const auto&...) { json[name] = value; });
  return json;
}

/// The settings as in a run's row.
inline Json to_json(const RunSettings& settings) {
  Json json = {{"seconds", settings.seconds},
               {"warmup_seconds", settings.warmup_seconds},
               {"messages", settings.messages},
               {"seed", settings.seed},
               {"repetitions", settings.repetitions},
               {"pinned_threads", settings.pin_threads},
               {"until_precise", settings.precision.wanted}};
  if (settings.traced) json["traced"] = true;
  return json;
}

}  // namespace feedrate
