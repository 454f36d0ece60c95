#include "experiments/feeding/answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/units.hpp"
#include "experiments/harness/measure/columns.hpp"
#include "variants/feeding/queue.hpp"
#include "variants/feeding/transfer.hpp"

namespace feedrate {
namespace {

constexpr std::size_t kLarge =
    4096;  // bytes; payloads of this size and above are compared by byte rate, smaller ones by message rate

std::string value_text(const std::string& category, const Answer::Place& place) {
  std::string text = !place.limited ? "" : category == "lone" ? "at most " : "at least ";
  if (category == "small") text += format_rate(place.value.median);
  if (category == "large") text += format_si(place.value.median) + "B/s";
  if (category == "lone") text += "p50 " + format_ns(place.value.median);
  text += place.value.spread_text();
  if (place.unstable) text += ", unstable";
  if (place.disturbed) text += ", every run disturbed";
  return text;
}

/// Verdict on two places: "unclear" if the second one's figure is only a bound, since its true figure may be better.
std::string against(const Answer::Place& first, const Answer::Place& second) {
  return second.limited ? "unclear" : comparison(first.value, second.value);
}

}  // namespace

void Answer::add(const Json& row) {
  if (row.value("kind", "") != "cell" || !row.contains("figures")) return;
  const Json& params = row["params"];
  if (params.value("arrivals", "closed") != "closed") return;
  const std::string queue = params["queue"], transfer = params["transfer"];
  const auto& entries = Queues::instance().entries();
  if (const auto known = entries.find(queue); known == entries.end() || !known->second.works) return;
  const bool generator_bound = row["cause"] == text_of(Cause::generator_bound);
  const bool disturbed = row["cause"] == text_of(Cause::disturbed);
  if (row["status"] != "ok" && !generator_bound && !disturbed) return;
  competed_.insert({queue, transfer});
  if (row.contains("search")) return;
  Measured& point = points_[params.dump()];
  point.queue = queue;
  point.variant = transfer == kNoTransfer ? queue : queue + " + " + transfer;
  point.values = info_.axes().values(params);
  point.payload = params["payload_bytes"];
  point.lone = params["window"] == 1 && params["producers"] == 1;
  point.cpu = params["device"] == "cpu";
  point.limited |= generator_bound;
  const bool afresh = is_afresh(row);
  point.messages.add(row["figures"]["messages_per_second"], afresh, disturbed);
  point.bytes.add(row["figures"]["bytes_per_second"], afresh, disturbed);
  point.p50.add(row["figures"]["latency_ns"]["p50"], afresh, disturbed);
  if (!row.contains("stop")) return;
  for (const Json& metric : row["stop"].value("unstable", Json::array())) point.unstable.insert(metric);
}

Answer::Category Answer::best(const std::string& name, std::size_t payload) const {
  const bool lone = name == "lone";
  const auto better = [lone](double a, double b) { return lone ? a < b : a > b; };
  // Leave out the axes that the category itself implies.
  std::set<std::string> said{"device", "payload"};
  if (lone) said.insert({"window", "producers"});
  std::map<std::string, Place> by_variant;
  for (const auto& [params, point] : points_) {
    if (point.payload != payload || (lone && !point.lone)) continue;
    const ChosenValues& values = lone ? point.p50 : name == "large" ? point.bytes : point.messages;
    Place place{.variant = point.variant,
                .settings = info_.settings(point.values, said),
                .values = point.values,
                .rank = values.rank(),
                .value = estimate_of(values.counted()),
                .limited = point.limited,
                .disturbed = values.disturbed(),
                .unstable = point.unstable.contains(lone ? "latency_ns.p50" : "messages_per_second")};
    const auto [known, fresh] = by_variant.try_emplace(point.variant, place);
    if (fresh) continue;
    place.of = known->second.of + 1;
    if (better(place.rank, known->second.rank)) known->second = place;
    known->second.of = place.of;
  }
  Category category{name, payload, {}};
  for (const auto& [variant, place] : by_variant) category.places.push_back(place);
  std::ranges::stable_sort(category.places, better, [](const Place& place) { return place.value.median; });
  return category;
}

std::vector<Chosen> Answer::chosen() const {
  std::vector<Chosen> all;
  for (const Category& category : categories()) {
    for (const Place& place : category.places) all.push_back({place.values, place.of});
  }
  return all;
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
  std::size_t largest = smallest;  // largest payload with which all queues were measured
  for (const auto& [payload, those] : queues_at) {
    if (those == queues) largest = payload;
  }
  // With a single size, its own category applies.
  std::vector<Category> all{best(largest == smallest && smallest >= kLarge ? "large" : "small", smallest)};
  if (largest != smallest) all.push_back(best("large", largest));
  if (Category lone = best("lone", smallest); !lone.places.empty()) all.push_back(std::move(lone));
  return all;
}

std::string Answer::text() const {
  std::string text;
  for (const Category& category : categories()) {
    const auto& places = category.places;
    const auto line = [&](const std::string& head, const Place& place) {
      text += fmt::format("  {:<18} {:<23} {}\n", head, place.variant, value_text(category.name, place));
    };
    line(fmt::format("{}, {}B", category.name, format_count(category.payload)), places[0]);
    if (const std::string& settings = places[0].settings; !settings.empty()) {
      text += "    " + wrapped("with" + settings, 9, kColumns - 4) + "\n";
    }
    if (places.size() > 1) line("  next: " + against(places[0], places[1]), places[1]);
  }
  if (text.empty()) return text;
  const bool cpu = points_.begin()->second.cpu;
  return best_heading(cpu) + text + absent_text();
}

std::string Answer::absent_text() const {
  std::vector<std::string> absent;
  for (const auto& [name, entry] : Queues::instance().entries()) {
    if (entry.works && !competed_.contains(name)) absent.push_back(name);
  }
  for (const auto& [name, entry] : Transfers::instance().entries()) {
    if (!competed_.contains(name)) absent.push_back(name);
  }
  if (absent.empty()) return "";
  return "  " + wrapped(fmt::format("did not compete: {}", fmt::join(absent, ", ")), 4, kColumns - 2) + "\n";
}

}  // namespace feedrate
