#include "experiments/harness/sweep/repeats.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {

bool is_disturbed(const Json& row) { return row.value("cause", "") == text_of(Cause::disturbed); }

double spread_of(const std::vector<double>& values) {
  if (values.empty()) return 1;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least > 0 ? *most / *least : 1;
}

double Repeats::half_width(const std::vector<double>& values) const {
  const double half = settings_.precision.wanted ? sequential_half_width_95(values) : half_width_95(values);
  return relative_to_mean(half, values);
}

bool Repeats::precise() const {
  const auto within = [&](const std::string& figure, double share) {
    const auto found = values_.find(figure);
    return found != values_.end() && half_width(found->second) <= share;
  };
  return (rate_.empty() || within(rate_, settings_.precision.throughput_within)) &&
         (time_.empty() || within(percentile(), settings_.precision.latency_within));
}

std::string Repeats::why_enough() const {
  if (disturbed_ > settings_.repetitions) return "disturbed";
  if (undisturbed_ < settings_.repetitions) return "";
  if (!settings_.precision.wanted) return "repetitions";
  if (values_.empty()) return "not ok";
  if (precise()) return "precise";
  if (undisturbed_ + disturbed_ >= settings_.precision.max_repetitions) return "most repetitions";
  return seconds_ >= settings_.precision.time_limit ? "time limit" : "";
}

Json Repeats::add(const Json& row) {
  ++(is_disturbed(row) ? disturbed_ : undisturbed_);
  seconds_ += row["time"]["duration_seconds"].get<double>();
  const std::set<std::string> figures{rate_, time_ + ".p50", time_ + ".p99", percentile()};
  if (row["status"] == "ok") {
    for (const std::string& figure : figures) {
      if (const auto value = figure_of(row, figure)) values_[figure].push_back(*value);
    }
  }
  if (row["status"] == "skipped") {
    stop_ = "not ok";
    return {};
  }
  stop_ = why_enough();
  if (stop_.empty()) return {};
  Json stop{{"reason", stop_}, {"repetitions", undisturbed_}, {"disturbed", disturbed_}};
  for (const auto& [figure, values] : values_) {
    if (values.size() < 2) continue;
    const double half = half_width(values);
    if (std::isfinite(half) && (figure == rate_ || figure == percentile())) stop["half_widths"][figure] = half;
    if (figure != rate_ && figure != time_ + ".p50" && figure != time_ + ".p99") continue;
    const double spread = spread_of(values);
    stop["spread"][figure] = spread;
    if (!stop.contains("unstable")) stop["unstable"] = Json::array();
    if (spread >= (figure.ends_with(".p99") ? kUnstableTail : kUnstable)) stop["unstable"].push_back(figure);
  }
  return stop;
}

}  // namespace feedrate
