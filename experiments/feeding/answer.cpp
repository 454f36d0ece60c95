#include "experiments/feeding/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/units.hpp"
#include "experiments/measure/statistics.hpp"
#include "variants/queue.hpp"

namespace feedrate {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string value_text(const std::string& category, const Answer::Place& place) {
  std::string text = !place.limited ? "" : category == "lone" ? "at most " : "at least ";
  if (category == "small") text += format_rate(place.value);
  if (category == "large") text += format_si(place.value) + "B/s";
  if (category == "lone") text += "p50 " + format_ns(place.value);
  if (place.half_width) text += fmt::format(" ± {:.0f} %", 100 * *place.half_width / place.value);
  if (place.unstable) text += ", unstable";
  if (place.disturbed) text += ", disturbed";
  return text;
}

/// How the two compare, where their intervals allow that.
std::string against(const Answer::Place& first, const Answer::Place& second) {
  const double apart = std::abs(first.value - second.value);
  if (!first.half_width || !second.half_width) return "one repetition: no interval";
  // What is only a bound on the second's figure may hide a better one.
  if (second.limited || apart <= *first.half_width + *second.half_width) return "no clear difference";
  return fmt::format("{:.2g} x", std::max(first.value, second.value) / std::min(first.value, second.value));
}

}  // namespace

void Answer::add(const Json& row) {
  if (row.value("kind", "") != "cell" || row.contains("search") || !row.contains("figures")) return;
  const Json& params = row["params"];
  if (params.value("arrivals", "closed") != "closed") return;
  const std::string queue = params["queue"], transfer = params["transfer"];
  const auto& entries = Queues::instance().entries();
  if (const auto known = entries.find(queue); known == entries.end() || !known->second.works) return;
  const bool driver_bound = row["cause"] == text_of(Cause::driver_bound);
  const bool disturbed = row["cause"] == text_of(Cause::disturbed);
  if (row["status"] != "ok" && !driver_bound && !disturbed) return;
  Measured& point = points_[params.dump()];
  // Where nothing else was measured of a point, what was disturbed is shown: left out, it would let others win.
  if (disturbed && !point.disturbed && !point.messages.empty()) return;
  if (!disturbed && point.disturbed) point = {};
  point.disturbed = disturbed;
  point.queue = queue;
  point.variant = transfer == kNoTransfer ? queue : queue + " + " + transfer;
  point.payload = params["payload_bytes"];
  point.lone = params["window"] == 1 && params["producers"] == 1;
  point.cpu = params["device"] == "cpu";
  point.limited |= driver_bound;
  point.messages.push_back(row["figures"]["messages_per_second"]);
  point.bytes.push_back(row["figures"]["bytes_per_second"]);
  point.p50.push_back(row["figures"]["latency_ns"]["p50"]);
  if (!row.contains("stop")) return;
  for (const Json& metric : row["stop"].value("unstable", Json::array())) point.unstable.insert(metric);
}

Answer::Category Answer::best(const std::string& name, std::size_t payload) const {
  const bool lone = name == "lone";
  std::map<std::string, Place> by_variant;
  for (const auto& [params, point] : points_) {
    if (point.payload != payload || (lone && !point.lone)) continue;
    const auto& values = lone ? point.p50 : name == "large" ? point.bytes : point.messages;
    Place place{point.variant,
                mean(values),
                {},
                point.limited,
                point.disturbed,
                point.unstable.contains(lone ? "latency_ns.p50" : "messages_per_second")};
    if (values.size() > 1) place.half_width = half_width_95(values);
    const auto [known, fresh] = by_variant.try_emplace(point.variant, place);
    const double before = known->second.value;
    if (!fresh && (lone ? place.value < before : place.value > before)) known->second = place;
  }
  Category category{name, payload, {}};
  for (const auto& [variant, place] : by_variant) category.places.push_back(place);
  std::stable_sort(category.places.begin(), category.places.end(),
                   [&](const Place& a, const Place& b) { return lone ? a.value < b.value : a.value > b.value; });
  return category;
}

std::vector<Answer::Category> Answer::categories() const {
  if (points_.empty()) return {};
  std::set<std::string> queues;
  std::map<std::size_t, std::set<std::string>> queues_at;
  for (const auto& [params, point] : points_) {
    queues.insert(point.queue);
    queues_at[point.payload].insert(point.queue);
  }
  const std::size_t smallest = queues_at.begin()->first;
  std::size_t largest = smallest;  // that all queues were measured with
  for (const auto& [payload, those] : queues_at) {
    if (those == queues) largest = payload;
  }
  std::vector<Category> all{best("small", smallest)};
  if (largest != smallest) all.push_back(best("large", largest));
  if (Category lone = best("lone", smallest); !lone.places.empty()) all.push_back(std::move(lone));
  return all;
}

std::string Answer::text() const {
  std::string text;
  for (const Category& category : categories()) {
    const auto& places = category.places;
    const auto line = [&](const std::string& head, const Place& place, const std::string& tail) {
      text += fmt::format("  {:<16}{:<24}{}{}\n", head, place.variant, value_text(category.name, place),
                          tail.empty() ? "" : " (" + tail + ")");
    };
    line(fmt::format("{}, {}B", category.name, format_count(category.payload)), places[0], "");
    if (places.size() > 1) line("  then", places[1], against(places[0], places[1]));
  }
  if (text.empty()) return text;
  const bool cpu = points_.begin()->second.cpu;
  return (cpu ? "Best on this CPU; NOT GPU results (± 95 % interval of the mean):\n"
              : "Best measured (± 95 % interval of the mean):\n") +
         text;
}

}  // namespace feedrate
