#include "experiments/sweep/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/hash.hpp"
#include "common/threads.hpp"
#include "experiments/sweep/halving.hpp"
#include "variants/queue.hpp"

namespace feedrate {
namespace {

constexpr double kShortest = 0.03, kShortestWarmup = 0.015;  // seconds of a first try
constexpr unsigned kLeastCap = 3;                            // a producer, a collector and a worker

/// The search's free axes as far as they make a difference here: a block size makes none on the CPU device.
struct Grid {
  std::vector<AxisValues> axes;
  Halving::Candidate start;

  Grid(const Search& search, Device& device) {
    for (AxisValues axis_values : search.free) {
      const Axis& a = axis(axis_values.axis);
      const std::string own = text_of(a, search.start);
      auto& values = axis_values.values;
      if (std::find(values.begin(), values.end(), own) == values.end()) values.push_back(own);
      std::stable_sort(values.begin(), values.end(), [&](const std::string& left, const std::string& right) {
        return value_of(a, left) < value_of(a, right);
      });
      std::set<Json> seen;
      for (const std::string& value : values) {
        Point point = search.start;
        a.set(point, value);
        seen.insert(params_of(resolve(point, device).point));
      }
      if (seen.size() < 2) continue;
      start.push_back(static_cast<std::size_t>(std::find(values.begin(), values.end(), own) - values.begin()));
      axes.push_back(std::move(axis_values));
    }
  }
  Point point(const Search& search, const Halving::Candidate& candidate) const {
    Point point = search.start;
    for (std::size_t i = 0; i < axes.size(); ++i) axis(axes[i].axis).set(point, axes[i].values[candidate[i]]);
    return point;
  }
  std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> all;
    for (const AxisValues& each : axes) all.push_back(each.values.size());
    return all;
  }

 private:
  static Json value_of(const Axis& a, const std::string& text) {
    Point scratch;
    a.set(scratch, text);
    return a.get(scratch);
  }
  static std::string text_of(const Axis& a, const Point& point) {
    const Json value = a.get(point);
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
};

double score_of(const Json& row, const std::string& goal) {
  return row.contains("throughput") ? row["throughput"][goal].get<double>() : 0;
}

}  // namespace

std::string variant_of(const Point& point) {
  return point.transfer == kNoTransfer ? point.queue : point.queue + " + " + point.transfer;
}

unsigned spinning_threads(const Point& point) { return 2 * point.producers + point.workers; }

Tuner::Tuner(Session& session, Results& results, std::function<void()> restart)
    : session_(session), results_(results), restart_(std::move(restart)) {
  for (const Json& row : results.earlier()) {
    if (row.contains("search") && row.value("reason", "") != "interrupted") earlier_[row.at("id")] = row;
  }
}

Json Tuner::measure(const Search& search, const Resolution& cell, unsigned rung, unsigned times, unsigned number) {
  Json identity = params_of(cell.point);
  identity["search"] = fmt::format("{} {}", search.goal, rung);
  const std::string id = row_id(identity, times);
  if (const auto known = earlier_.find(id); known != earlier_.end()) return known->second;
  RunSettings brief = session_.settings();
  brief.seconds = kShortest * (1u << rung);
  brief.warmup_seconds = kShortestWarmup;
  brief.messages = 0;
  brief.no_stages = true;
  brief.compare_with_driver = false;
  const RunSettings usual = session_.exchange_settings(brief);
  const Json mark{{"variant", variant_of(cell.point)}, {"goal", search.goal}, {"rung", rung}, {"try", number}};
  Json row = results_.measure(session_, cell, 0, restart_, [&](Json& made) {
    made["id"] = id;
    made["search"] = mark;
  });
  session_.exchange_settings(usual);
  if (!interrupted()) results_.write(row);
  return row;
}

Point Tuner::find(const Search& search, const Tell& tell) {
  const unsigned cap = std::max(available_cores(), kLeastCap);
  const Grid grid(search, session_.device());
  struct Known {
    double score = 0;
    unsigned times = 0;  // measured
    std::set<Halving::Candidate> asked;
  };
  std::map<std::string, Known> all_known;  // by point and rung: candidates may come to the same point
  unsigned tries = 0;
  const auto attempt = [&](const Halving::Candidate& candidate, unsigned rung) -> Halving::Trial {
    const Point asked = grid.point(search, candidate);
    const Resolution cell = resolve(asked, session_.device());
    if (!cell.impossible.empty() || spinning_threads(cell.point) > cap || !search.allowed(asked)) return {};
    if (interrupted()) return {0, search.seconds};
    Known& known = all_known[fmt::format("{} {}", params_of(cell.point).dump(), rung)];
    // Another candidate's point needs no measurement; the same candidate asked again wants one more.
    if (known.asked.insert(candidate).second && known.times != 0) return {known.score, 0};
    const Json row = measure(search, cell, rung, known.times++, tries++);
    known.score = score_of(row, search.goal);
    tell(row, tries);
    return {known.score, row["time"]["duration_seconds"]};
  };
  // Each variant draws its own numbers, whatever was searched before it.
  const std::uint64_t seed = session_.settings().seed ^ hash64(variant_of(search.start) + search.goal);
  return grid.point(search, Halving(grid.sizes(), grid.start, search.seconds, seed).find(attempt));
}

}  // namespace feedrate
