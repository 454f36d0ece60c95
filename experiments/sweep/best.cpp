#include "experiments/sweep/best.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "experiments/measure/statistics.hpp"
#include "experiments/sweep/repeats.hpp"

namespace feedrate {
namespace {

/// For every headline figure the variant with the best point; of distributions, the median counts.
class Best final : public Summary {
 public:
  explicit Best(const Kind& kind) : kind_(kind) {}

  void add(const Json& row) override {
    if (row.value("kind", "") != "cell" || row.contains("search")) return;
    const bool disturbed = is_disturbed(row);
    if (row.value("status", "") != "ok" && !disturbed) return;
    Point& point = points_[row["params"].dump()];
    // Where nothing else was measured of a point, what was disturbed is shown: left out, it would let others win.
    if (disturbed && !point.disturbed && !point.values.empty()) return;
    if (!disturbed && point.disturbed) point = {};
    point.disturbed = disturbed;
    point.variant = kind_.variant(kind_.axes().values(row["params"]));
    cpu_ |= row["params"].value("device", "") == "cpu";
    for (const Figure& figure : kind_.entry().figures) {
      if (!figure.headline) continue;
      if (const auto value = figure_of(row, part_of(figure))) point.values[figure.name].push_back(*value);
    }
  }

  std::string text() const override {
    std::string text;
    for (const Figure& figure : kind_.entry().figures) {
      const auto places = places_of(figure);
      if (places.empty()) continue;
      text += line(figure, part_of(figure), places[0], "");
      if (places.size() > 1) text += line(figure, "  then", places[1], against(places[0], places[1]));
    }
    if (text.empty()) return text;
    return (cpu_ ? "Best on this CPU; NOT GPU results (± 95 % interval of the mean):\n"
                 : "Best measured (± 95 % interval of the mean):\n") +
           text;
  }

 private:
  struct Point {
    std::string variant;
    bool disturbed = false;                             // in every repetition
    std::map<std::string, std::vector<double>> values;  // of the repetitions, by figure
  };
  struct Place {
    std::string variant;
    double value = 0, half_width = 0;
    bool repeated = false, disturbed = false;
  };
  static std::string part_of(const Figure& figure) { return figure.name + (figure.distribution ? ".p50" : ""); }

  /// Each variant's best point, the best first.
  std::vector<Place> places_of(const Figure& figure) const {
    const bool higher = figure.better == Better::higher;
    std::map<std::string, Place> best;
    for (const auto& [params, point] : points_) {
      const auto found = point.values.find(figure.name);
      if (found == point.values.end()) continue;
      const auto& values = found->second;
      const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
      const bool repeated = values.size() > 1;
      const Place place{point.variant, mean, repeated ? half_width_95(values) : 0, repeated, point.disturbed};
      const auto [known, fresh] = best.try_emplace(point.variant, place);
      if (!fresh && (higher ? mean > known->second.value : mean < known->second.value)) known->second = place;
    }
    std::vector<Place> places;
    for (const auto& [variant, place] : best) places.push_back(place);
    std::stable_sort(places.begin(), places.end(),
                     [&](const Place& a, const Place& b) { return higher ? a.value > b.value : a.value < b.value; });
    return places;
  }
  static std::string against(const Place& first, const Place& second) {
    if (!first.repeated || !second.repeated) return "one repetition: no interval";
    if (std::abs(first.value - second.value) <= first.half_width + second.half_width) return "no clear difference";
    return fmt::format("{:.2g} x", std::max(first.value, second.value) / std::min(first.value, second.value));
  }
  std::string line(const Figure& figure, const std::string& head, const Place& place, const std::string& tail) const {
    std::string value = kind_.text(figure.name, place.value);
    if (place.repeated) value += fmt::format(" ± {:.0f} %", 100 * place.half_width / place.value);
    if (place.disturbed) value += ", disturbed";
    return fmt::format("  {:<22}{:<20}{}{}\n", head, place.variant, value, tail.empty() ? "" : " (" + tail + ")");
  }

  const Kind& kind_;
  std::map<std::string, Point> points_;  // by parameters
  bool cpu_ = false;
};

}  // namespace

std::unique_ptr<Summary> summary_of(const Kind& kind) {
  return kind.entry().summary ? kind.entry().summary() : std::make_unique<Best>(kind);
}

}  // namespace feedrate
