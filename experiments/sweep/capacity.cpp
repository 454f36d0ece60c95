#include "experiments/sweep/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/error.hpp"
#include "common/units.hpp"

namespace feedrate {
namespace {

constexpr unsigned kMostSteps = 12;  // of either end of the interval, outwards

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
  if (lowest_bad == nullptr) return;
  capacity.limit = fmt::format("at {} {}", format_rate(static_cast<double>(lowest_bad->rate)), lowest_bad->why);
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

namespace {

/// What the percentile would be without the load generator's own lag, where the experiment tells.
std::optional<double> without_own_lag(const Json& row, const Slo& slo) {
  const Json load = row.value("details", Json::object()).value("load", Json::object());
  if (!load.contains("without_own_lag_ns")) return std::nullopt;
  return load["without_own_lag_ns"][slo.percentile].get<double>();
}

}  // namespace

bool generator_decides(const Json& row, const Slo& slo) {
  const auto latency = slo.value_of(row), prompt = without_own_lag(row, slo);
  return latency && prompt && *latency > slo.bound_ns && *prompt <= slo.bound_ns;
}

Probe judge(std::uint64_t rate, const Json& row, const Slo& slo) {
  Probe probe{rate, false, row["reason"], row.value("id", "")};
  const auto latency = slo.value_of(row);
  if (!latency) return probe;  // nothing came back in time
  const bool ok = row["status"] == "ok";
  probe.sustained = (ok || row["cause"] == text_of(Cause::generator)) && *latency <= slo.bound_ns;
  if (probe.sustained) probe.why.clear();
  if (ok && !probe.sustained) {
    probe.why = fmt::format("{} {}", slo.percentile, format_ns(*latency));
    if (generator_decides(row, slo)) {
      probe.why += fmt::format("; without the generator's own lag {}", format_ns(*without_own_lag(row, slo)));
    }
  }
  return probe;
}

std::uint64_t CapacitySearch::scaled(std::uint64_t rate, double by) const {
  return std::clamp(static_cast<std::uint64_t>(static_cast<double>(rate) * by), settings_.least, settings_.most);
}

bool CapacitySearch::once(const Try& probe, std::uint64_t rate) {
  probes_.push_back(probe(rate));
  Count& count = counts_[rate];
  count.good += probes_.back().sustained ? 1 : 0;
  ++count.all;
  return probes_.back().sustained;
}

/// Tries a rate until it was tried often enough, or so often `afresh`; false at the first that does not come out as
/// `sustained`.
bool CapacitySearch::always(const Try& probe, std::uint64_t rate, bool sustained, bool afresh) {
  const Count& count = counts_[rate];
  const auto agreed = [&] { return (sustained ? count.good : count.all - count.good) == count.all; };
  const unsigned enough = settings_.repeats + (afresh ? count.all : 0);
  while (count.all < enough && agreed()) once(probe, rate);
  return agreed();
}

/// False: all rates are sustained, or none.
bool CapacitySearch::bracket(const Try& probe) {
  std::uint64_t rate = scaled(settings_.start, 1);
  while (low_ == 0 || high_ == 0) {
    (once(probe, rate) ? low_ : high_) = rate;
    if ((low_ == settings_.most && high_ == 0) || (high_ == settings_.least && low_ == 0)) return false;
    if (low_ == 0) rate = scaled(high_, 0.25);
    if (high_ == 0) rate = scaled(low_, 4);
  }
  return true;
}

void CapacitySearch::widen(const Try& probe, bool afresh) {
  const auto move = [&](std::uint64_t& rate, bool sustained, std::uint64_t last) {
    double by = settings_.resolution;  // doubled at each step: the boundary may be far from where luck had put it
    for (unsigned steps = 0; steps < kMostSteps && !always(probe, rate, sustained, afresh) && rate != last; ++steps) {
      // A step of the resolution may be less than one message a second.
      rate = sustained ? std::min(scaled(rate, 1 / (1 + by)), rate - 1) : std::max(scaled(rate, 1 + by), rate + 1);
      by *= 2;
    }
  };
  if (low_ != 0) move(low_, true, settings_.least);
  if (high_ != 0) move(high_, false, settings_.most);
}

void CapacitySearch::find(const Try& probe) {
  if (!bracket(probe)) return;
  while (static_cast<double>(high_) > static_cast<double>(low_) * (1 + settings_.resolution) && high_ - low_ > 1) {
    const std::uint64_t middle = std::max(between(low_, high_), low_ + 1);
    (once(probe, middle) ? low_ : high_) = middle;
  }
  widen(probe, false);
}

void CapacitySearch::again(const Try& probe) {
  tried_again_ = true;
  widen(probe, true);
}

Capacity CapacitySearch::answer() const {
  Capacity capacity;
  capacity.probes = probes_;
  settle(capacity);
  // What was sustained or not between the two rates is known of an earlier time alone.
  if (tried_again_ && low_ != 0) capacity.low = std::min(capacity.low, low_);
  if (tried_again_ && capacity.high != 0) capacity.high = std::max(capacity.high, high_);
  return capacity;
}

}  // namespace feedrate
