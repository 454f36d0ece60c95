#include "experiments/harness/sweep/ab_power.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {
namespace {

struct ReferenceSpread {
  std::string_view experiment, figure, variant;
  double deviation;  // of one point
};
#include "experiments/harness/sweep/ab_spreads.inc"

}  // namespace

double detectable(double deviation, unsigned starts, std::size_t points, double margin) {
  constexpr double kFalse = 0.05, kPower = 0.8;
  const double quantile = student_quantile(1 - kFalse / 2 / static_cast<double>(points), starts - 1);
  const double away = quantile + normal_quantile(kPower);
  return std::expm1(std::log1p(margin) + away * deviation / std::sqrt(static_cast<double>(starts)));
}

void Spreads::add(const std::string& figure, const std::string& variant, double deviation) {
  deviations_[figure][variant].push_back(deviation);
}

std::vector<std::string> Spreads::lines(const std::vector<std::string>& figures,
                                        const std::vector<std::string>& variants, unsigned starts) const {
  std::vector<std::string> lines;
  for (const std::string& figure : figures) {
    const auto known = deviations_.find(figure);
    if (known == deviations_.end()) continue;
    std::vector<std::string> parts;
    for (const auto& [variant, deviations] : known->second) {
      if (std::ranges::find(variants, variant) == variants.end()) continue;
      const auto [least, most] = std::ranges::minmax(deviations);
      const auto found = [&](double deviation) {
        return fmt::format("{:.2g}", 100 * detectable(deviation, starts, variants.size()));
      };
      const std::string best = found(least), worst = found(most);
      parts.push_back(fmt::format("{} {}{} %", variant, best, best == worst ? "" : " to " + worst));
    }
    if (!parts.empty()) lines.push_back(fmt::format("{}: {}", figure, fmt::join(parts, ", ")));
  }
  return lines;
}

Spreads reference_spreads(std::string_view experiment, std::string_view device) {
  Spreads found;
  if (device != "cuda") return found;
  for (const ReferenceSpread& each : kReferenceSpreads) {
    if (each.experiment == experiment) found.add(std::string(each.figure), std::string(each.variant), each.deviation);
  }
  return found;
}

std::string_view reference_trials() { return kReferenceTrials; }

void Variation::add(std::uint64_t point, const Json& a, const Json& b) {
  for (const auto& [name, value] : a.items()) {
    if (!b.contains(name) || value <= 0 || b[name] <= 0) continue;
    logs_[name][point].push_back(std::log(b[name].get<double>() / value.get<double>()));
  }
}

Spreads Variation::spreads(const std::vector<std::string>& variants) const {
  Spreads found;
  for (const auto& [figure, points] : logs_) {
    for (const auto& [point, logs] : points) {
      if (logs.size() > 1) found.add(figure, variants.at(point), deviation_of(logs));
    }
  }
  return found;
}

}  // namespace feedrate
