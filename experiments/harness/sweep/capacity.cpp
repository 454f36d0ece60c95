#include "experiments/harness/sweep/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "common/error.hpp"
#include "common/units.hpp"

namespace feedrate {
namespace {

constexpr unsigned kLaterRounds = 6;

std::string why_missed(const std::vector<Probe>& probes, std::uint64_t rate) {
  const auto missed =
      std::find_if(probes.begin(), probes.end(), [&](const Probe& one) { return one.rate == rate && !one.kept; });
  return missed == probes.end() ? "" : missed->why;
}

std::uint64_t between(std::uint64_t low, std::uint64_t high) {
  return static_cast<std::uint64_t>(std::sqrt(static_cast<double>(low) * static_cast<double>(high)));
}

/// Whether the tries reject the hypothesis that the bound is met with a share of `null`, or with one farther from the
/// alternatives. The likelihood ratio of each alternative is a supermartingale under all these shares, hence their mean
/// also is.
bool rejects(double null, std::array<double, 2> alternatives, double kept, double missed) {
  double ratio = 0;
  for (const double share : alternatives) {
    ratio += std::exp(kept * std::log(share / null) + missed * std::log((1 - share) / (1 - null))) /
             static_cast<double>(alternatives.size());
  }
  return ratio >= 1 / RateTest::kError;
}

Json rates_json(const std::vector<Judged>& rates) {
  Json all = Json::array();
  for (const Judged& one : rates) {
    all.push_back({{"rate", one.rate},
                   {"tries", one.tries},
                   {"kept", one.kept},
                   {"disturbed", one.disturbed},
                   {"verdict", text_of(one.verdict)}});
  }
  return all;
}

}  // namespace

const char* text_of(Verdict verdict) {
  constexpr std::array kTexts{"open", "sustained", "not sustained", "undecided"};  // in the order of the enumerators
  return kTexts.at(static_cast<std::size_t>(verdict));
}

Json to_json(const Capacity& found) {
  Json probes = Json::array();
  for (const Probe& one : found.probes) {
    probes.push_back(
        {{"id", one.row}, {"rate", one.rate}, {"kept", one.kept}, {"disturbed", one.disturbed}, {"why", one.why}});
  }
  return {{"low", found.low},
          {"high", found.high},
          {"undecided", found.undecided},
          {"between", rates_json(found.between)},
          {"limit", found.limit},
          {"tries", found.probes.size()},
          {"disturbed", found.disturbed},
          {"rates", rates_json(found.rates)},
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

Probe judge(std::uint64_t rate, const Json& row, const Slo& slo, const std::string& prompt, const std::string& behind) {
  Probe probe{rate, false, row["reason"], row.value("cause", "") == text_of(Cause::disturbed), row.value("id", "")};
  const auto latency = slo.value_of(row);
  const bool fell_behind = !behind.empty() && row.contains(Json::json_pointer(behind));
  if (!latency || fell_behind || (row["status"] != "ok" && !probe.disturbed)) return probe;
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

void RateTest::add(bool kept, bool disturbed) {
  ++tries_;
  kept_ += kept ? 1 : 0;
  disturbed_ += disturbed ? 1 : 0;
}

Verdict RateTest::verdict() const {
  if (tries_ < kLeastTries) return Verdict::open;
  const bool more = rejects(kAtMost, {kBetween, kAtLeast}, kept_, tries_ - kept_);
  const bool less = rejects(kAtLeast, {kBetween, kAtMost}, kept_, tries_ - kept_);
  if (more && less) return Verdict::undecided;
  return more ? Verdict::sustained : less ? Verdict::not_sustained : Verdict::open;
}

std::uint64_t CapacitySearch::scaled(std::uint64_t rate, double by) const {
  return std::clamp(static_cast<std::uint64_t>(static_cast<double>(rate) * by), settings_.least, settings_.most);
}

bool CapacitySearch::apart(std::uint64_t low, std::uint64_t high) const {
  return high - low > 1 && static_cast<double>(high) > static_cast<double>(low) * (1 + settings_.resolution);
}

void CapacitySearch::once(const Try& probe, std::uint64_t rate) {
  probes_.push_back(probe(rate));
  tests_[rate].add(probes_.back().kept, probes_.back().disturbed);
}

std::pair<std::uint64_t, std::uint64_t> CapacitySearch::boundary() const {
  int sum = 0, best = 0;  // the boundary is where the rates below it have the greatest sum of balances
  auto above = tests_.begin();
  for (auto at = tests_.begin(); at != tests_.end(); ++at) {
    sum += at->second.balance();
    if (sum > best) best = sum, above = std::next(at);
  }
  return {above == tests_.begin() ? 0 : std::prev(above)->first, above == tests_.end() ? 0 : above->first};
}

std::uint64_t CapacitySearch::new_rate() const {
  if (tests_.empty()) return scaled(settings_.start, 1);
  const auto [low, high] = boundary();
  if (low == 0) return high == settings_.least ? 0 : scaled(high, 0.25);
  if (high == 0) return low == settings_.most ? 0 : scaled(low, 4);
  return apart(low, high) ? std::max(between(low, high), low + 1) : 0;
}

void CapacitySearch::find(const Try& probe) {
  for (std::uint64_t rate = new_rate(); rate != 0; rate = new_rate()) once(probe, rate);
}

void CapacitySearch::block(const Try& probe, std::mt19937_64& random) {
  if (const std::uint64_t rate = new_rate(); rate != 0) return once(probe, rate);
  const auto [low, high] = boundary();
  std::array rates{low, high};
  std::ranges::shuffle(rates, random);
  for (const std::uint64_t rate : rates) {
    if (rate != 0) once(probe, rate);
  }
}

bool CapacitySearch::settled() const {
  if (probes_.size() >= kMaxTries) return true;
  if (new_rate() != 0) return false;
  const auto [low, high] = boundary();
  return (low == 0 || tests_.at(low).verdict() == Verdict::sustained) &&
         (high == 0 || tests_.at(high).verdict() == Verdict::not_sustained);
}

Capacity CapacitySearch::answer() const {
  Capacity capacity;
  capacity.probes = probes_;
  std::uint64_t highest_sustained = 0, lowest_not = 0;
  for (const auto& [rate, test] : tests_) {
    const Verdict verdict = test.verdict();
    capacity.rates.push_back({rate, test.tries(), test.kept(), test.disturbed(), verdict});
    capacity.disturbed += test.disturbed();
    if (verdict == Verdict::not_sustained && lowest_not == 0) lowest_not = rate;
    if (verdict == Verdict::sustained) highest_sustained = rate;
  }
  for (const Judged& one : capacity.rates) {
    if (one.verdict == Verdict::sustained && (lowest_not == 0 || one.rate < lowest_not)) capacity.low = one.rate;
    if (one.verdict == Verdict::not_sustained && one.rate > highest_sustained && capacity.high == 0) {
      capacity.high = one.rate;
      capacity.limit = fmt::format("met in {} of {} tries: {}", one.kept, one.tries, why_missed(probes_, one.rate));
    }
  }
  const bool beyond = capacity.low == settings_.most || capacity.high == settings_.least;
  const bool bracketed = capacity.low != 0 && capacity.high != 0;
  capacity.undecided = bracketed ? apart(capacity.low, capacity.high) : !beyond;
  if (!capacity.undecided) return capacity;
  std::ranges::copy_if(capacity.rates, std::back_inserter(capacity.between), [&](const Judged& one) {
    return one.rate > capacity.low && (capacity.high == 0 || one.rate < capacity.high);
  });
  return capacity;
}

void settle_in_rounds(const std::vector<const CapacitySearch*>& searches, std::mt19937_64& random,
                      const std::function<bool(std::size_t)>& block) {
  std::vector<std::size_t> order(searches.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<bool> ended(searches.size());
  const auto round = [&](bool all) {
    bool any = false;
    std::ranges::shuffle(order, random);
    for (const std::size_t at : order) {
      if (ended[at] || (!all && searches[at]->settled())) continue;
      ended[at] = !block(at);
      any = true;
    }
    return any;
  };
  while (round(false)) continue;
  for (unsigned later = 0; later < kLaterRounds; ++later) round(true);
  while (round(false)) continue;
}

}  // namespace feedrate
