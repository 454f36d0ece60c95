#include "experiments/harness/sweep/best.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/harness/measure/statistics.hpp"
#include "experiments/harness/sweep/repeats.hpp"

namespace feedrate {
namespace {

/// The variant with the best point for every headline figure. Distributions are compared by their medians.
class Best final : public Summary {
 public:
  explicit Best(const ExperimentInfo& info) : info_(info) {}

  void add(const Json& row) override {
    if (row.value("kind", "") != "cell" || row.contains("search")) return;
    const bool disturbed = is_disturbed(row);
    if (row.value("status", "") != "ok" && !disturbed) return;
    Point& point = points_[row["params"].dump()];
    // If a point has only disturbed measurements, show those: leaving the point out would let others win.
    if (disturbed && !point.disturbed && !point.values.empty()) return;
    if (!disturbed && point.disturbed) point = {};
    point.disturbed = disturbed;
    point.variant = info_.variant(info_.axes().values(row["params"]));
    cpu_ |= row["params"].value("device", "") == "cpu";
    for (const Figure& figure : info_.entry().figures) {
      if (!figure.headline) continue;
      if (const auto value = figure_of(row, part_of(figure))) point.values[figure.name].push_back(*value);
    }
  }

  std::string text() const override {
    std::string text;
    for (const Figure& figure : info_.entry().figures) {
      const auto places = places_of(figure);
      if (places.empty()) continue;
      text += line(figure, part_of(figure), places[0]);
      if (places.size() > 1) text += line(figure, "  then, " + comparison(places[0].value, places[1].value), places[1]);
    }
    if (text.empty()) return text;
    return best_heading(cpu_) + text;
  }

 private:
  struct Point {
    std::string variant;
    bool disturbed = false;                             // in every repetition
    std::map<std::string, std::vector<double>> values;  // one value per repetition, by figure
  };
  struct Place {
    std::string variant;
    Estimate value;
    bool disturbed = false;
  };
  static std::string part_of(const Figure& figure) { return figure.name + (figure.distribution ? ".p50" : ""); }

  /// The best point of each variant, sorted with the best first.
  std::vector<Place> places_of(const Figure& figure) const {
    const auto better = [higher = figure.better == Better::higher](const Place& a, const Place& b) {
      return higher ? a.value.median > b.value.median : a.value.median < b.value.median;
    };
    std::map<std::string, Place> best;
    for (const auto& [params, point] : points_) {
      const auto found = point.values.find(figure.name);
      if (found == point.values.end()) continue;
      const auto& values = found->second;
      const Place place{point.variant, estimate_of(values), point.disturbed};
      const auto [known, fresh] = best.try_emplace(point.variant, place);
      if (!fresh && better(place, known->second)) known->second = place;
    }
    std::vector<Place> places;
    places.reserve(best.size());
    for (const auto& [variant, place] : best) places.push_back(place);
    std::stable_sort(places.begin(), places.end(), better);
    return places;
  }
  std::string line(const Figure& figure, const std::string& head, const Place& place) const {
    return fmt::format("  {:<21} {:<20}{}{}{}\n", head, place.variant, info_.text(figure.name, place.value.median),
                       place.value.spread_text(), place.disturbed ? ", disturbed" : "");
  }

  const ExperimentInfo& info_;
  std::map<std::string, Point> points_;  // by parameters
  bool cpu_ = false;
};

}  // namespace

std::unique_ptr<Summary> summary_of(const ExperimentInfo& info) {
  const auto& own = info.entry().terminal.summary;
  return own ? own() : std::make_unique<Best>(info);
}

}  // namespace feedrate
