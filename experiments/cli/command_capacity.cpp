#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <random>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/threads.hpp"
#include "common/units.hpp"
#include "experiments/sweep/capacity.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/sweep/folder.hpp"
#include "experiments/cli/options.hpp"
#include "experiments/cli/progress.hpp"
#include "experiments/sweep/repeats.hpp"
#include "experiments/sweep/results.hpp"
#include "experiments/feeding/schedule.hpp"

namespace feedrate {
namespace {

struct Options {
  CommonOptions common;
  FolderOptions folder;
  std::vector<std::string> slos{"p99:1ms"};
  double resolution = 0.05;
};

/// A percentile of a handful of messages says nothing: so many times the reciprocal of its tail must come back.
constexpr double kTails = 20;
constexpr double kLongest = 10;  // times the seconds that were asked for, where the rate is low

double messages_needed(const Slo& slo) {
  static const std::map<std::string, double> kTail{{"p50", 0.5}, {"p90", 0.1}, {"p99", 0.01}, {"p999", 0.001}};
  return kTails / kTail.at(slo.percentile);
}

std::string rate_text(std::uint64_t rate) { return format_rate(static_cast<double>(rate)); }

std::string answer_text(const Json& row) {
  if (row["status"] != "ok")
    return fmt::format("{}: {}", row["status"].get<std::string>(), row["reason"].get<std::string>());
  const Json& found = row["capacity"];
  const std::uint64_t low = found["low"], high = found["high"];
  if (high == 0) return fmt::format("at least {}", rate_text(low));
  const std::string limit = found["limit"];
  if (low == 0) return fmt::format("less than {} ({})", rate_text(high), limit);
  return fmt::format("{} to {} ({})", rate_text(low), rate_text(high), limit);
}

std::string point_text(Point point) {
  point.rate = 0;  // each probe has its own
  return short_text(point);
}

/// Searches the capacities of points, one after the other, and when all are through tries their boundaries again: a
/// machine's state changes within minutes, and an answer must hold that. Every try becomes a row, every answer too.
class Capacities {
 public:
  Capacities(Session& session, Results& results, double resolution)
      : session_(session), results_(results), resolution_(resolution), seconds_(session.settings().seconds) {
    for (const Json& row : results.earlier()) {
      if (row.value("kind", "") != "cell") continue;
      const std::string key = row.at("params").dump();
      ++measured_[key];
      if (row.value("reason", "") != "interrupted") earlier_[key].push_back(row);
    }
  }

  /// All bounds for one point, the tightest first: the next one's search begins where it ended.
  void find(const Resolution& resolution, const std::vector<Slo>& slos, unsigned repetition) {
    std::uint64_t start = 0;
    for (const Slo& slo : slos) {
      Search search{resolution.point, slo, CapacitySearch({}), answer_row(resolution, slo, repetition)};
      if (!resolution.impossible.empty()) {
        search.answer["status"] = "skipped";
        search.answer["reason"] = resolution.impossible;
      } else {
        do_part(search, [&](const CapacitySearch::Try& probe) {
          if (start == 0) start = closed_rate(search.point) / 2;
          search.boundary = CapacitySearch(settings(slo, start));
          search.boundary.find(probe);
          const Capacity found = search.boundary.answer();
          start = std::max(found.low, found.high);
        });
      }
      if (interrupted()) return;
      fmt::print(stderr, "{}, so far\n", line_of(search));
      searches_.push_back(std::move(search));
    }
  }

  /// Tries the boundaries again, in an order of their own, and writes the answers.
  void confirm(std::mt19937_64& random) {
    std::shuffle(searches_.begin(), searches_.end(), random);
    const auto done = results_.done("capacity");
    for (Search& search : searches_) {
      if (search.answer["status"] == "ok") {
        do_part(search, [&](const CapacitySearch::Try& probe) { search.boundary.again(probe); });
      }
      if (interrupted()) return;
      if (done.contains(search.answer["id"].get<std::string>())) continue;
      search.answer["environment"] = session_.environment();
      results_.write(search.answer);
      fmt::print("{}\n", line_of(search));
      std::fflush(stdout);  // a search takes minutes, and who waits may read a pipe
    }
  }

  /// All answers by point and bound, on stderr.
  void print_table() const {
    std::vector<Resolution> points;
    std::map<std::string, std::vector<std::string>> lines;
    for (const Search& search : searches_) points.push_back({search.point, ""});
    if (points.empty()) return;
    const Labels labels(points);
    for (const Search& search : searches_) {
      lines[labels.of(search.point) + " " + search.slo.text].push_back(answer_text(search.answer));
    }
    fmt::print(stderr, "Highest rates that keep the bound (up to, from where not):\n");
    for (const auto& [name, answers] : lines) {
      fmt::print(stderr, "  {}\n", shortened(name, kColumns - 2));
      for (const std::string& answer : answers) fmt::print(stderr, "    {}\n", shortened(answer, kColumns - 4));
    }
  }

 private:
  struct Search {
    Point point;
    Slo slo;
    CapacitySearch boundary;
    Json answer;  // its row
  };

  Json answer_row(const Resolution& resolution, const Slo& slo, unsigned repetition) {
    Point any_rate = resolution.point;
    if (any_rate.arrivals != "trace") any_rate.rate = 0;
    Json params = params_of(any_rate);
    Json identity = params;
    identity["slo"] = slo.text;
    return {{"schema", 1},
            {"kind", "capacity"},
            {"id", row_id(identity, repetition)},
            {"repetition", repetition},
            {"status", "ok"},
            {"reason", ""},
            {"params", std::move(params)},
            {"run", to_json(session_.settings())},
            {"slo", {{"percentile", slo.percentile}, {"bound_ns", slo.bound_ns}, {"text", slo.text}}},
            {"environment", session_.environment()},
            {"time", {{"started", utc_now()}, {"duration_seconds", 0.0}}}};
  }
  static std::string line_of(const Search& search) {
    return fmt::format("{} {}: {}", point_text(search.point), search.slo.text, answer_text(search.answer));
  }

  double longest_phase() const { return std::max(seconds_, session_.settings().warmup_seconds); }

  SearchSettings settings(const Slo& slo, std::uint64_t start) const {
    SearchSettings search;
    search.resolution = resolution_;
    search.least =
        std::max<std::uint64_t>(10, static_cast<std::uint64_t>(messages_needed(slo) / (kLongest * seconds_)) + 1);
    search.most =
        std::min(search.most, static_cast<std::uint64_t>(static_cast<double>(kMostArrivals) / longest_phase()));
    search.start = std::clamp(start, search.least, search.most);
    return search;
  }

  /// One measurement more of a point, and more again while that `says_nothing`; the rows are written. What was measured
  /// before a run was cut short is not measured again: the search comes the same way.
  Json measure(Point point, double seconds, const std::function<bool(const Json&)>& says_nothing) {
    constexpr unsigned kMostTries = 6;
    const Resolution cell = resolve(std::move(point), session_.device());
    const std::string key = params_of(cell.point).dump();
    std::deque<Json>& earlier = earlier_[key];
    Json row;
    for (unsigned tries = 0; tries == 0 || (says_nothing(row) && tries < kMostTries); ++tries) {
      if (!earlier.empty()) {
        row = std::move(earlier.front());
        earlier.pop_front();
        continue;
      }
      RunSettings longer = session_.settings();
      longer.seconds = seconds;
      const RunSettings usual = session_.exchange_settings(longer);
      row = results_.measure(session_, cell, measured_[key]++, {});
      session_.exchange_settings(usual);
      if (interrupted()) throw Failure("interrupted");
      results_.write(row);
    }
    return row;
  }

  /// What the point does with its window always full: an upper end to start from.
  std::uint64_t closed_rate(Point point) {
    point.arrivals = "closed";
    point.rate = 0;
    const Json row = measure(point, seconds_, is_disturbed);
    if (!row.contains("throughput")) throw Failure(fmt::format("closed load: {}", row["reason"].get<std::string>()));
    return static_cast<std::uint64_t>(row["throughput"]["messages_per_second"].get<double>());
  }

  Probe try_rate(Search& search, std::uint64_t rate) {
    Point point = search.point;
    point.rate = rate;
    const Json row =
        measure(point, std::max(seconds_, messages_needed(search.slo) / static_cast<double>(rate)),
                [&](const Json& tried) { return is_disturbed(tried) || generator_decides(tried, search.slo); });
    if (row["status"] == "failed") throw Failure(row["reason"].get<std::string>());
    search.answer["cost"] = row["cost"];
    Probe one = judge(rate, row, search.slo);
    fmt::print(stderr, "  {}: {}\n", rate_text(one.rate), one.sustained ? "sustained" : one.why);
    return one;
  }

  /// A part of a search, and what is known by then.
  void do_part(Search& search, const std::function<void(const CapacitySearch::Try&)>& part) {
    Json& answer = search.answer;
    const auto began = now_ns();
    try {
      part([&](std::uint64_t rate) { return try_rate(search, rate); });
      const Capacity found = search.boundary.answer();
      Json probes = Json::array();
      for (const Probe& one : found.probes) {
        probes.push_back({{"id", one.row}, {"rate", one.rate}, {"sustained", one.sustained}, {"why", one.why}});
      }
      answer["capacity"] = {{"low", found.low},
                            {"high", found.high},
                            {"limit", found.limit},
                            {"resolution", resolution_},
                            {"probes", std::move(probes)}};
    } catch (const Failure& failure) {
      answer["status"] = "failed";
      answer["reason"] = failure.what();
    }
    double& seconds = answer["time"]["duration_seconds"].get_ref<double&>();
    seconds += static_cast<double>(now_ns() - began) / 1e9;
  }

  Session& session_;
  Results& results_;
  double resolution_, seconds_;
  std::vector<Search> searches_;
  std::map<std::string, unsigned> measured_;         // repetitions of each point so far
  std::map<std::string, std::deque<Json>> earlier_;  // of those, what an earlier run measured and this has not used
};

/// About so many probes does a search take: brackets, bisection, and both ends tried again, twice.
double probes_of(double resolution) {
  constexpr double kBracket = 3;
  const unsigned ends = 2 * 2 * SearchSettings{}.repeats;
  return kBracket + std::log2(std::log(4) / std::log1p(resolution)) + ends;
}

void print_plan(const std::string& name, const std::vector<Resolution>& points, const std::vector<Slo>& slos,
                const Options& options) {
  constexpr double kSetUpSeconds = 0.1;
  const RunSettings& run = options.common.run;
  const auto possible =
      std::count_if(points.begin(), points.end(), [](const Resolution& each) { return each.impossible.empty(); });
  const auto searches = static_cast<double>(run.repetitions * slos.size()) * static_cast<double>(possible);
  const double seconds = searches * probes_of(options.resolution) * (run.seconds + run.warmup_seconds + kSetUpSeconds);
  std::string bounds;
  for (const Slo& slo : slos) bounds += " " + slo.text;
  fmt::print(stderr,
             "{}: the highest rate that keeps{}, for {} points, {} searches each;\n"
             "about {:.0f} s, more where rates are low or the boundary is not sharp\n",
             name, bounds, points.size(), run.repetitions, seconds);
  for (const Resolution& each : points) {
    fmt::print(stderr, "  {}{}\n", point_text(each.point),
               each.impossible.empty() ? "" : " · skipped: " + each.impossible);
  }
  if (const auto text = crowded_text(points, available_cores()); !text.empty()) fmt::print(stderr, "{}\n", text);
}

int capacity(Options& options, CLI::App& command, const std::vector<std::string>& arguments) {
  FolderOptions& folder = options.folder;
  if (folder.spec.empty() && !folder.resuming()) folder.spec = "capacity";
  Spec spec = folder.load(options.common, command);
  if (options.common.run.seconds <= 0) throw BadInput("--seconds", "0", "more than 0 seconds for a probe");
  // A resume must know what the command line said.
  Json& search = spec.document["capacity"];
  if (!search.is_object()) search = Json::object();
  if (command.count("--slo") == 0) options.slos = search.value("slo", options.slos);
  if (command.count("--resolution") == 0) options.resolution = search.value("resolution", options.resolution);
  search = {{"slo", options.slos}, {"resolution", options.resolution}};
  std::vector<Slo> slos;
  for (const std::string& text : options.slos) slos.push_back(parse_slo(text));
  std::stable_sort(slos.begin(), slos.end(), [](const Slo& a, const Slo& b) { return a.bound_ns < b.bound_ns; });
  const auto directory = folder.directory("capacity");
  auto session = options.common.session(arguments, false);
  for (Point& point : spec.points) {
    if (!is_open(point)) point.arrivals = "poisson";
    if (point.arrivals != "trace" || point.rate == 0) point.rate = 1;  // each probe has its own
  }
  std::vector<Resolution> points = distinct(spec.points, session->device());
  print_plan(spec.name, points, slos, options);
  if (folder.dry_run) return 0;
  const bool redis = any_uses_redis(points);
  if (redis) reach_redis(*session);
  Results results = folder.open(directory, spec, *session);
  results.provide_floors(*session, redis);
  Capacities capacities(*session, results, options.resolution);
  for (unsigned repetition = 0; repetition < options.common.run.repetitions; ++repetition) {
    std::mt19937_64 random(options.common.run.seed * 1000 + repetition);
    std::shuffle(points.begin(), points.end(), random);
    for (const Resolution& point : points) capacities.find(point, slos, repetition);
  }
  std::mt19937_64 random(options.common.run.seed * 1000 + options.common.run.repetitions);
  if (!interrupted()) capacities.confirm(random);
  capacities.print_table();
  if (session->device().kind() == "cpu") fmt::print(stderr, "These ran on the CPU device: they are not GPU results.\n");
  fmt::print(stderr, "results in {}\n", directory.string());
  if (interrupted()) fmt::print(stderr, "{}\n", resume_text("capacity", directory));
  return interrupted() ? 130 : 0;
}

}  // namespace

void add_capacity(CLI::App& app, Action& action, const std::vector<std::string>& arguments) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("capacity", "find the highest rate that keeps a bound on latency");
  options->folder.add(*command, "capacity");
  command->add_option("--slo", options->slos, "PERCENTILE:TIME, as in p99:50us; may be repeated")
      ->type_name("SLO")
      ->take_all()
      ->capture_default_str();
  add_percent(*command, "resolution", options->resolution, "how close the rates come that bracket the answer");
  options->common.add_device(*command);
  options->common.add_redis(*command);
  options->common.add_run(*command);
  command->callback([options, command, &action, &arguments] {
    action = [options, command, &arguments] { return capacity(*options, *command, arguments); };
  });
}

}  // namespace feedrate
