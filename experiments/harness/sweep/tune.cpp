#include "experiments/harness/sweep/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/hash.hpp"
#include "common/threads/threads.hpp"
#include "experiments/harness/sweep/halving.hpp"

namespace feedrate {
namespace {

constexpr double kShortest = 0.03, kShortestWarmup = 0.015;  // seconds of a first try
constexpr double kLongestPass = 1. / 12;  // share of the budget, so that one slow try does not use it up
constexpr unsigned kLeastCap = 3;         // a producer, a collector and a worker

/// The free axes of the search that have an effect on this device; a block size has none on the CPU device.
struct Grid {
  std::vector<AxisValues> axes;
  Halving::Candidate start;

  Grid(const Search& search, Session& session) : table_(session.info().axes()) {
    for (AxisValues axis_values : search.free) {
      const Axis& a = table_.axis(axis_values.axis);
      const std::string own = text_of(table_.value(search.start, a.name));
      auto& values = axis_values.values;
      if (std::find(values.begin(), values.end(), own) == values.end()) values.push_back(own);
      std::stable_sort(values.begin(), values.end(),
                       [&](const std::string& left, const std::string& right) { return a.read(left) < a.read(right); });
      std::set<Json> seen;
      for (const std::string& value : values) {
        Values point = search.start;
        point[a.name] = a.read(value);
        seen.insert(table_.params(session.resolve(point).values));
      }
      if (seen.size() < 2) continue;
      start.push_back(static_cast<std::size_t>(std::find(values.begin(), values.end(), own) - values.begin()));
      axes.push_back(std::move(axis_values));
    }
  }
  Values point(const Search& search, const Halving::Candidate& candidate) const {
    Values point = search.start;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      point[axes[i].axis] = table_.axis(axes[i].axis).read(axes[i].values[candidate[i]]);
    }
    return point;
  }
  /// The values for the constraints: a searched value that leaves the choice open, such as `producers` 0, is replaced
  /// by the resolved one.
  Values counted(Values asked, const Values& resolved) const {
    for (const AxisValues& each : axes) {
      if (const auto found = resolved.find(each.axis); found != resolved.end()) asked[each.axis] = found->second;
    }
    return asked;
  }
  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> all;
    for (const AxisValues& each : axes) all.push_back(each.values.size());
    return all;
  }

 private:
  const AxisTable& table_;
};

}  // namespace

Tuner::Tuner(Session& session, Results& results, std::function<void()> restart)
    : session_(session), results_(results), restart_(std::move(restart)) {
  for (const Json& row : results.earlier()) {
    if (row.contains("search") && row.value("cause", "") != text_of(Cause::interrupted)) earlier_[row.at("id")] = row;
  }
}

Json Tuner::measure(const Search& search, const Resolution& cell, unsigned rung, unsigned times, unsigned number) {
  Json identity = session_.info().axes().params(cell.values);
  identity["search"] = fmt::format("{} {}", search.goal, rung);
  const std::string id = row_id(identity, times);
  if (const auto known = earlier_.find(id); known != earlier_.end()) return known->second;
  RunSettings brief = session_.settings();
  brief.seconds = kShortest * (1u << rung);
  brief.warmup_seconds = kShortestWarmup;
  brief.messages = 0;
  brief.extend_warmup = false;
  brief.no_stages = true;
  brief.compare_with_generator = false;
  brief.longest_pass_seconds = std::max(kLongestPass * search.seconds, 5 * brief.seconds);
  const RunSettings usual = session_.exchange_settings(brief);
  const Json mark{
      {"variant", session_.info().variant(cell.values)}, {"goal", search.goal}, {"rung", rung}, {"try", number}};
  Json row = results_.measure(session_, cell, 0, restart_, [&](Json& made) {
    made["id"] = id;
    made["search"] = mark;
  });
  session_.exchange_settings(usual);
  if (!interrupted()) results_.write(row);
  return row;
}

Values Tuner::find(const Search& search, const Tell& tell) {
  const unsigned cap = std::max(available_cores(), kLeastCap);
  const Grid grid(search, session_);
  const ExperimentInfo& info = session_.info();
  struct Known {
    double score = 0;
    unsigned times = 0;  // measured
    std::set<Halving::Candidate> asked;
  };
  std::map<std::string, Known> all_known;  // by point and rung, because candidates may resolve to the same point
  unsigned tries = 0;
  const auto attempt = [&](const Halving::Candidate& candidate, unsigned rung) -> Halving::Trial {
    const Values asked = grid.point(search, candidate);
    const Resolution cell = session_.resolve(asked);
    if (!cell.impossible.empty() || info.entry().threads(cell.values) > cap) return {};
    if (!search.allowed(grid.counted(asked, cell.values))) return {};
    if (interrupted()) return {0, search.seconds};
    Known& known = all_known[fmt::format("{} {}", info.axes().params(cell.values).dump(), rung)];
    // A point that another candidate has measured is not measured again; a repeated candidate is measured once more.
    if (known.asked.insert(candidate).second && known.times != 0) return {known.score, 0};
    const Json row = measure(search, cell, rung, known.times++, tries++);
    known.score = figure_of(row, search.goal).value_or(0);
    tell(row, tries);
    return {known.score, row["time"]["duration_seconds"]};
  };
  // Each variant has its own random numbers, independent of earlier searches.
  const std::uint64_t seed = session_.settings().seed ^ hash64(info.variant(search.start) + search.goal);
  return grid.point(search, Halving(grid.sizes(), grid.start, search.seconds, seed).find(attempt));
}

}  // namespace feedrate
