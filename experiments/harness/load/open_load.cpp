#include "experiments/harness/load/open_load.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/units.hpp"
#include "experiments/harness/load/schedule.hpp"

namespace feedrate {
namespace {

/// The load is behind if messages were never sent, or if the backlog grew by more than kGrowth of the messages due and
/// by more than kBatches batches per producer. A queue in balance also has a backlog, but it rises and falls.
constexpr double kGrowth = 0.01;
constexpr double kBatches = 8;

struct BehindBecause {
  Cause cause;
  std::string evidence;
};

std::optional<BehindBecause> why_behind(const LoadResult& result, const OpenLoad& load) {
  const Backlog& backlog = result.backlog;
  const auto due = static_cast<double>(result.due);
  const double grown = backlog.end - backlog.begin;
  const double balanced = kBatches * static_cast<double>(load.batch) * load.senders;
  const bool grows = grown > std::max(kGrowth * due, balanced) && backlog.end > 2 * backlog.begin;
  if (result.unsent == 0 && !grows) return std::nullopt;
  const std::string evidence = fmt::format(
      "the backlog grew by {} while {} were due; {:.0f} messages were behind at the end, {} were never sent",
      format_rate(backlog.per_second), format_rate(due / result.seconds), backlog.end, result.unsent);
  // If there always was room, the endpoint is not the cause.
  const bool own = result.blocked_share < 0.1 && result.own_lag.quantile(0.5) > 0.5 * result.send_lag.quantile(0.5) &&
                   result.send_lag.quantile(0.5) > 0.5 * result.latency.quantile(0.5);
  return own ? BehindBecause{Cause::generator, "generator: " + evidence} : BehindBecause{Cause::backlog, evidence};
}

/// Returns the evidence that the generator was late, or "". It is late if its own lag accounts for a tenth or more of
/// the median response time, or a quarter or more of the 99th percentile. Two allowances always apply: the time to read
/// the clock and submit a batch and, for the 99th percentile, twice the scheduling delay of a spinning thread on this
/// host (`pause_ns`), because no generator can do better. Only what the lag adds to a percentile counts: if the lag
/// affects messages other than those that the queue delays, the percentile is still the queue's.
std::string how_late(const LoadResult& result, double pause_ns) {
  constexpr double kLongestPause = 10'000;  // ns; a host with longer pauses is unsuitable for measuring tails
  struct Limit {
    double quantile, share, least_ns;
    const char* name;
  };
  for (const Limit& limit :
       {Limit{0.5, 0.1, 300, "half"}, Limit{0.99, 0.25, std::clamp(2 * pause_ns, 1000.0, kLongestPause), "1 %"}}) {
    const double response = result.latency.quantile(limit.quantile);
    const double prompt = result.without_own_lag.quantile(limit.quantile);
    if (response - prompt > std::max(limit.least_ns, limit.share * response)) {
      return fmt::format("{} of the messages took {} or more; without the generator's own lag, {}", limit.name,
                         format_ns(response), format_ns(prompt));
    }
  }
  return "";
}

}  // namespace

void describe_open_load(const LoadResult& result, const OpenLoad& load, Measurement& measured) {
  measured.histograms["service_ns"] = {result.service, load.sample_every};
  measured.histograms["send_lag_ns"] = {result.send_lag, load.sample_every};
  for (const auto& [priority, latency] : result.by_priority) {
    measured.details["priorities_ns"][std::to_string(priority)] = to_json(latency, load.sample_every);
  }
  const Backlog& backlog = result.backlog;
  measured.details["load"] = {
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
      {"batch", load.batch},
      {"blocked_share", result.blocked_share},
      {"backlog",
       {{"begin", backlog.begin}, {"end", backlog.end}, {"max", backlog.most}, {"per_second", backlog.per_second}}}};
  if (const auto behind = why_behind(result, load)) {
    const bool own = behind->cause == Cause::generator;
    measured.details["load"]["behind"] = behind->evidence;
    measured.judge(own ? Status::invalid : Status::unsustainable, behind->cause, behind->evidence);
  }
  // The row still counts as measured: the true response times lie between those without the generator's lag and the
  // measured ones.
  if (const std::string late = how_late(result, load.pause_ns); !late.empty()) {
    measured.flags.insert(Flag::late_generator);
    measured.details["load"]["late"] = late;
  }
}

std::vector<Figure> open_load_figures() {
  return {{"service_ns", "ns", Better::lower, true, false, "open load: response time from submission"},
          {"send_lag_ns", "ns", Better::lower, true, false,
           "open load: delay from a request's due time to its submission"}};
}

OfferedLoad offered_load() {
  const auto opened = [](Values values) {
    LoadShape shape = load_axes().of(values);
    if (!is_open(shape)) shape.arrivals = "poisson";
    if (shape.arrivals != "trace" || shape.rate == 0) shape.rate = 1;  // each probe sets its own rate
    load_axes().put(shape, values);
    return values;
  };
  const auto closed = [](Values values) {
    LoadShape shape = load_axes().of(values);
    shape.arrivals = "closed";
    shape.rate = 0;
    load_axes().put(shape, values);
    return values;
  };
  return {"rate", opened, closed, kMaxArrivals, "/details/load/without_own_lag_ns", "/details/load/behind"};
}

}  // namespace feedrate
