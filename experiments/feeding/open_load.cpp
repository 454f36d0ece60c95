#include "experiments/feeding/open_load.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/units.hpp"
#include "experiments/feeding/row_json.hpp"

namespace feedrate {
namespace {

/// Messages that were never sent, or a backlog that grew by more than this share of what was due, and by more than a
/// few batches of each producer: a queue in balance has a backlog, too, but one that comes and goes.
constexpr double kGrowth = 0.01;
constexpr double kBatches = 8;

std::string why_unsustainable(const Point& point, const PassResult& result) {
  const Backlog& backlog = result.backlog;
  const auto due = static_cast<double>(result.due);
  const double grown = backlog.end - backlog.begin;
  const double balanced = kBatches * static_cast<double>(point.batch) * point.producers;
  const bool grows = grown > std::max(kGrowth * due, balanced) && backlog.end > 2 * backlog.begin;
  if (result.unsent == 0 && !grows) return "";
  const std::string evidence = fmt::format(
      "the backlog grew by {} where {} were due; {:.0f} messages were behind at the end, {} were never sent",
      format_rate(backlog.per_second), format_rate(due / result.seconds), backlog.end, result.unsent);
  // Where the queue always had room, it was not the queue.
  const bool own = result.blocked_share < 0.1 && result.own_lag.quantile(0.5) > 0.5 * result.send_lag.quantile(0.5) &&
                   result.send_lag.quantile(0.5) > 0.5 * result.latency.quantile(0.5);
  return own ? "generator: " + evidence : evidence;
}

/// A generator falls behind when its own lateness makes a tenth or more of what half of the messages take, or a quarter
/// or more of what one in a hundred takes. It is always allowed what a look at the clock and a batch take, and for one
/// in a hundred twice what the host lets any thread wait that only looks (`pause_ns`): no generator can do better
/// there. What counts is what it adds: where it is late for other messages than those that the queue is slow for, the
/// percentile is still the queue's.
std::string why_generator(const PassResult& result, double pause_ns) {
  constexpr double kLongestPause = 10'000;  // ns; a host that is worse is no place to measure tails
  struct Limit {
    double quantile, share, least_ns;
    const char* name;
  };
  for (const Limit& limit :
       {Limit{0.5, 0.1, 300, "half"}, Limit{0.99, 0.25, std::clamp(2 * pause_ns, 1000.0, kLongestPause), "1 %"}}) {
    const double response = result.latency.quantile(limit.quantile);
    const double prompt = result.without_own_lag.quantile(limit.quantile);
    if (response - prompt > std::max(limit.least_ns, limit.share * response)) {
      return fmt::format("generator: {} of the messages took {} or more, and without its own lag {}", limit.name,
                         format_ns(response), format_ns(prompt));
    }
  }
  return "";
}

}  // namespace

void describe_open_load(const Point& point, const PassResult& result, unsigned sample_every, double pause_ns,
                        Json& row) {
  row["bound"].erase("throughput");  // the rate is what was asked for, not what the queue can do
  row["service_ns"] = to_json(result.service, sample_every);
  row["send_lag_ns"] = to_json(result.send_lag, sample_every);
  for (const auto& [priority, latency] : result.by_priority) {
    row["priorities_ns"][std::to_string(priority)] = to_json(latency, sample_every);
  }
  const Backlog& backlog = result.backlog;
  row["load"] = {
      {"due", result.due},
      {"unsent", result.unsent},
      {"due_per_second", static_cast<double>(result.due) / result.seconds},
      {"own_lag_ns",
       {{"p50", result.own_lag.quantile(0.5)}, {"p99", result.own_lag.quantile(0.99)}, {"max", result.own_lag.max()}}},
      {"without_own_lag_ns",
       {{"p50", result.without_own_lag.quantile(0.5)},
        {"p90", result.without_own_lag.quantile(0.9)},
        {"p99", result.without_own_lag.quantile(0.99)},
        {"p999", result.without_own_lag.quantile(0.999)}}},
      {"granularity_ns", result.granularity_ns},
      {"batch", point.batch},
      {"blocked_share", result.blocked_share},
      {"backlog",
       {{"begin", backlog.begin}, {"end", backlog.end}, {"max", backlog.most}, {"per_second", backlog.per_second}}}};
  if (const std::string why = why_unsustainable(point, result); !why.empty()) {
    row["status"] = why.starts_with("generator") ? "invalid" : "unsustainable";
    row["reason"] = why;
  } else if (const std::string late = why_generator(result, pause_ns); !late.empty()) {
    row["status"] = "invalid";
    row["reason"] = late;
  }
}

}  // namespace feedrate
