#include "experiments/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/error.hpp"
#include "common/units.hpp"

namespace feedrate {
namespace {

constexpr unsigned kMostSteps = 12;  // of either end of the interval, outwards

/// The tries so far, by rate.
class Tries {
 public:
  Tries(const std::function<Probe(std::uint64_t)>& probe, Capacity& capacity) : probe_(probe), capacity_(capacity) {}
  bool once(std::uint64_t rate) {
    const Probe probe = probe_(rate);
    capacity_.probes.push_back(probe);
    auto& [good, all] = counts_[rate];
    good += probe.sustained ? 1 : 0;
    ++all;
    return probe.sustained;
  }
  /// Tries a rate until it was tried `n` times; false at the first that does not come out as `sustained`.
  bool always(std::uint64_t rate, bool sustained, unsigned n) {
    while (counts_[rate].second < n && agreed(rate, sustained)) once(rate);
    return agreed(rate, sustained);
  }

 private:
  bool agreed(std::uint64_t rate, bool sustained) {
    const auto& [good, all] = counts_[rate];
    return (sustained ? good : all - good) == all;
  }

  const std::function<Probe(std::uint64_t)>& probe_;
  Capacity& capacity_;
  std::map<std::uint64_t, std::pair<unsigned, unsigned>> counts_;
};

/// From all probes: the largest rate up to which all were sustained, the smallest from which on none was.
void settle(Capacity& capacity) {
  const Probe* lowest_bad = nullptr;
  std::uint64_t highest_good = 0;
  for (const Probe& probe : capacity.probes) {
    if (probe.sustained) highest_good = std::max(highest_good, probe.rate);
    if (!probe.sustained && (lowest_bad == nullptr || probe.rate < lowest_bad->rate)) lowest_bad = &probe;
  }
  for (const Probe& probe : capacity.probes) {
    if (probe.sustained && (lowest_bad == nullptr || probe.rate < lowest_bad->rate)) {
      capacity.low = std::max(capacity.low, probe.rate);
    }
    if (!probe.sustained && probe.rate > highest_good && (capacity.high == 0 || probe.rate < capacity.high)) {
      capacity.high = probe.rate;
    }
  }
  if (lowest_bad != nullptr) capacity.limit = lowest_bad->why;
}

std::uint64_t between(std::uint64_t low, std::uint64_t high) {
  return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(low) * static_cast<double>(high)));
}

}  // namespace

Slo parse_slo(const std::string& text) {
  constexpr auto kAllowed = "PERCENTILE:TIME with p50, p90, p99 or p999 and ns, us, ms or s, as in p99:50us";
  const auto colon = text.find(':');
  if (colon == std::string::npos) throw BadInput("--slo", text, kAllowed);
  Slo slo{text.substr(0, colon), 0, text};
  static const std::map<std::string, double> kUnits{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  const std::string time = text.substr(colon + 1);
  const auto letters = time.find_first_not_of("0123456789.");
  const auto unit = letters == std::string::npos ? kUnits.end() : kUnits.find(time.substr(letters));
  const bool known =
      slo.percentile == "p50" || slo.percentile == "p90" || slo.percentile == "p99" || slo.percentile == "p999";
  if (!known || unit == kUnits.end() || letters == 0) throw BadInput("--slo", text, kAllowed);
  slo.bound_ns = parse_number("--slo", time.substr(0, letters)) * unit->second;
  if (!(slo.bound_ns > 0)) throw BadInput("--slo", text, kAllowed);
  return slo;
}

bool generator_decides(const Json& row, const Slo& slo) {
  if (!row.contains("latency_ns") || !row.contains("load")) return false;
  return row["latency_ns"][slo.percentile] > slo.bound_ns &&
         row["load"]["without_own_lag_ns"][slo.percentile] <= slo.bound_ns;
}

Probe judge(std::uint64_t rate, const Json& row, const Slo& slo) {
  Probe probe{rate, false, row["reason"]};
  if (!row.contains("latency_ns")) return probe;  // nothing came back in time
  const double latency = row["latency_ns"][slo.percentile];
  const bool ok = row["status"] == "ok";
  probe.sustained = (ok || probe.why.starts_with("generator")) && latency <= slo.bound_ns;
  if (probe.sustained) probe.why.clear();
  if (ok && !probe.sustained) {
    probe.why = fmt::format("{} {}", slo.percentile, format_ns(latency));
    if (generator_decides(row, slo)) {
      probe.why += fmt::format("; without the generator's own lag {}",
                               format_ns(row["load"]["without_own_lag_ns"][slo.percentile]));
    }
  }
  return probe;
}

Capacity find_capacity(const std::function<Probe(std::uint64_t rate)>& probe, const CapacitySearch& search) {
  Capacity capacity;
  Tries tries(probe, capacity);
  const auto scaled = [&](std::uint64_t rate, double by) {
    return std::clamp(static_cast<std::uint64_t>(static_cast<double>(rate) * by), search.least, search.most);
  };
  std::uint64_t low = 0, high = 0, rate = scaled(search.start, 1);  // 0: not known yet
  const auto bracket = [&] {
    while (low == 0 || high == 0) {
      (tries.once(rate) ? low : high) = rate;
      if ((low == search.most && high == 0) || (high == search.least && low == 0)) return false;
      if (low == 0) rate = scaled(high, 0.25);
      if (high == 0) rate = scaled(low, 4);
    }
    return true;
  };
  if (bracket()) {
    while (static_cast<double>(high) > static_cast<double>(low) * (1 + search.resolution) && high - low > 1) {
      const std::uint64_t middle = std::max(between(low, high), low + 1);
      (tries.once(middle) ? low : high) = middle;
    }
    double by = search.resolution;  // doubled at each step: the boundary may be far from where luck had put it
    for (unsigned steps = 0; steps < kMostSteps && !tries.always(low, true, search.repeats) && low > search.least;
         ++steps) {
      low = std::min(scaled(low, 1 / (1 + by)), low - 1);
      by *= 2;
    }
    by = search.resolution;
    for (unsigned steps = 0; steps < kMostSteps && !tries.always(high, false, search.repeats) && high < search.most;
         ++steps) {
      high = std::max(scaled(high, 1 + by), high + 1);
      by *= 2;
    }
  }
  settle(capacity);
  return capacity;
}

}  // namespace feedrate
