#include "experiments/harness/sweep/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "common/error.hpp"
#include "common/units.hpp"

namespace feedrate {
namespace {

constexpr unsigned kMaxSteps = 12;     // outward steps for each end of the interval
constexpr unsigned kMaxRounds = 3;     // rounds of bisecting and judging
constexpr double kWide = 6;            // steps of the resolution between the two rates; a smaller gap may be noise
constexpr unsigned kMaxDisturbed = 6;  // consecutive disturbed tries of a rate after which the rate is undecided

const char* why_missed(const std::vector<Probe>& probes, std::uint64_t rate) {
  const auto missed = std::find_if(probes.begin(), probes.end(),
                                   [&](const Probe& one) { return one.rate == rate && !one.kept && !one.disturbed; });
  return missed == probes.end() ? "" : missed->why.c_str();
}

std::uint64_t between(std::uint64_t low, std::uint64_t high) {
  return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(low) * static_cast<double>(high)));
}

}  // namespace

const char* text_of(Verdict verdict) {
  constexpr std::array kTexts{"open", "sustained", "not sustained", "undecided"};  // in the order of the enumerators
  return kTexts.at(static_cast<std::size_t>(verdict));
}

Json to_json(const Capacity& found) {
  Json rates = Json::array(), probes = Json::array();
  for (const Judged& one : found.rates) {
    rates.push_back({{"rate", one.rate},
                     {"part", one.part},
                     {"tries", one.tries},
                     {"kept", one.kept},
                     {"verdict", text_of(one.verdict)}});
  }
  for (const Probe& one : found.probes) {
    probes.push_back(
        {{"id", one.row}, {"rate", one.rate}, {"kept", one.kept}, {"disturbed", one.disturbed}, {"why", one.why}});
  }
  return {{"low", found.low},
          {"high", found.high},
          {"limit", found.limit},
          {"rates", std::move(rates)},
          {"probes", std::move(probes)}};
}

Slo parse_slo(const std::string& text) {
  constexpr auto kAllowed = "PERCENTILE:TIME with p50, p90, p99 or p999 and ns, us, ms or s, for example p99:50us";
  const auto colon = text.find(':');
  if (colon == std::string::npos) throw BadInput("--slo", text, kAllowed);
  Slo slo{text.substr(0, colon), 0, 0, text};
  static const std::map<std::string, double> kTails{{"p50", 0.5}, {"p90", 0.1}, {"p99", 0.01}, {"p999", 0.001}};
  static const std::map<std::string, double> kUnits{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  const std::string time = text.substr(colon + 1);
  const auto letters = time.find_first_not_of("0123456789.");
  const auto unit = letters == std::string::npos ? kUnits.end() : kUnits.find(time.substr(letters));
  const auto tail = kTails.find(slo.percentile);
  if (tail == kTails.end() || unit == kUnits.end() || letters == 0) throw BadInput("--slo", text, kAllowed);
  slo.tail = tail->second;
  slo.bound_ns = parse_number("--slo", time.substr(0, letters)) * unit->second;
  if (!(slo.bound_ns > 0)) throw BadInput("--slo", text, kAllowed);
  return slo;
}

Probe judge(std::uint64_t rate, const Json& row, const Slo& slo, const std::string& prompt) {
  Probe probe{rate, false, row["reason"], row.value("cause", "") == text_of(Cause::disturbed), row.value("id", "")};
  const auto latency = slo.value_of(row);
  if (!latency || probe.disturbed) return probe;
  if (row["status"] != "ok") return probe;
  probe.kept = *latency <= slo.bound_ns;
  probe.why.clear();
  if (probe.kept) return probe;
  probe.why = fmt::format("{} {}", slo.percentile, format_ns(*latency));
  if (const Json::json_pointer at(prompt); !prompt.empty() && row.contains(at)) {
    const double without = row[at][slo.percentile];
    if (without <= slo.bound_ns) probe.why += fmt::format("; {} without the generator's own lag", format_ns(without));
  }
  return probe;
}

std::uint64_t CapacitySearch::scaled(std::uint64_t rate, double by) const {
  return std::clamp(static_cast<std::uint64_t>(static_cast<double>(rate) * by), settings_.least, settings_.most);
}

/// Tries the rate until one try is undisturbed, at most kMaxDisturbed times; returns whether the bound was met.
bool CapacitySearch::once(const Try& probe, std::uint64_t rate) {
  for (unsigned disturbed = 0; disturbed < kMaxDisturbed; ++disturbed) {
    probes_.push_back(probe(rate));
    if (probes_.back().disturbed) continue;
    tests_[{rate, part_}].add(probes_.back().kept);
    return probes_.back().kept;
  }
  return false;
}

Verdict CapacitySearch::prove(const Try& probe, std::uint64_t rate) {
  RateTest& test = tests_[{rate, part_}];
  while (test.verdict() == Verdict::open) {
    const unsigned known = test.tries();
    once(probe, rate);
    if (test.tries() == known) return Verdict::undecided;  // the machine disturbs every try
  }
  return test.verdict();
}

void CapacitySearch::bracket(const Try& probe) {
  std::uint64_t rate = scaled(settings_.start, 1);
  while (low_ == 0 || high_ == 0) {
    (once(probe, rate) ? low_ : high_) = rate;
    if ((low_ == settings_.most && high_ == 0) || (high_ == settings_.least && low_ == 0)) return;
    if (low_ == 0) rate = scaled(high_, 0.25);
    if (high_ == 0) rate = scaled(low_, 4);
  }
}

void CapacitySearch::widen(const Try& probe) {
  const auto move = [&](std::uint64_t& rate, Verdict wanted, std::uint64_t last) {
    const bool down = wanted == Verdict::sustained;
    double by = settings_.resolution;  // doubled at each step, because the boundary found may be far off by chance
    for (unsigned steps = 0; prove(probe, rate) != wanted;) {
      do {  // one try per step; the rate is judged once a try has the wanted result
        if (rate == last || ++steps > kMaxSteps) {
          prove(probe, rate);
          return;
        }
        // A step of the resolution may be less than one message per second.
        rate = down ? std::min(scaled(rate, 1 / (1 + by)), rate - 1) : std::max(scaled(rate, 1 + by), rate + 1);
        by *= 2;
      } while (once(probe, rate) != down);
    }
  };
  if (low_ != 0) move(low_, Verdict::sustained, settings_.least);
  if (high_ != 0) move(high_, Verdict::not_sustained, settings_.most);
}

void CapacitySearch::find(const Try& probe) {
  bracket(probe);
  for (unsigned round = 0; round < kMaxRounds; ++round) {
    while (low_ != 0 && high_ != 0 && apart(1)) {
      const std::uint64_t middle = std::max(between(low_, high_), low_ + 1);
      (once(probe, middle) ? low_ : high_) = middle;
    }
    widen(probe);
    const Capacity found = answer();
    if (found.low == 0 || found.high == 0) return;
    low_ = found.low, high_ = found.high;  // an outward step may have gone too far
    if (!apart(kWide)) return;
  }
}

bool CapacitySearch::apart(double steps) const {
  return high_ - low_ > 1 &&
         std::log(static_cast<double>(high_) / static_cast<double>(low_)) > steps * std::log1p(settings_.resolution);
}

void CapacitySearch::again(const Try& probe) {
  ++part_;
  widen(probe);
}

Capacity CapacitySearch::answer() const {
  Capacity capacity;
  capacity.probes = probes_;
  std::map<std::uint64_t, Verdict> verdicts;  // over all parts, which must agree
  for (const auto& [at, test] : tests_) {
    const auto [rate, part] = at;
    capacity.rates.push_back({rate, part, test.tries(), test.kept(), test.verdict()});
    if (test.verdict() == Verdict::open) continue;
    const auto [known, fresh] = verdicts.try_emplace(rate, test.verdict());
    if (!fresh && known->second != test.verdict()) known->second = Verdict::undecided;
  }
  for (const auto& [rate, verdict] : verdicts) {
    if (verdict != Verdict::sustained) break;
    capacity.low = rate;
  }
  for (auto at = verdicts.rbegin(); at != verdicts.rend() && at->second == Verdict::not_sustained; ++at) {
    capacity.high = at->first;
  }
  const auto failed =
      std::find_if(verdicts.begin(), verdicts.end(), [](const auto& one) { return one.second != Verdict::sustained; });
  if (failed == verdicts.end()) return capacity;
  unsigned tries = 0, kept = 0;
  for (const Judged& one : capacity.rates) {
    if (one.rate == failed->first) tries += one.tries, kept += one.kept;
  }
  capacity.limit_at = failed->first;
  capacity.limit = fmt::format("met in {} of {} tries: {}", kept, tries, why_missed(probes_, failed->first));
  return capacity;
}

void RateTest::add(bool kept) {
  static const double kKept = std::log(kAtLeast / kAtMost), kMissed = std::log((1 - kAtLeast) / (1 - kAtMost));
  static const double kEnough = std::log((1 - kError) / kError);
  evidence_ += kept ? kKept : kMissed;
  kept_ += kept ? 1 : 0;
  ++tries_;
  if (verdict_ != Verdict::open) return;
  if (evidence_ >= kEnough) verdict_ = Verdict::sustained;
  if (evidence_ <= -kEnough) verdict_ = Verdict::not_sustained;
  if (verdict_ == Verdict::open && tries_ >= kMaxTries) verdict_ = Verdict::undecided;
}

}  // namespace feedrate
