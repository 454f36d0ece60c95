#include "experiments/harness/measure/measurement.hpp"

#include <array>

namespace feedrate {

// The strings are in the order of the enumerators.

const char* text_of(Status status) {
  constexpr std::array kTexts{"ok", "invalid", "unsustainable", "failed", "skipped"};
  return kTexts.at(static_cast<std::size_t>(status));
}

const char* text_of(Cause cause) {
  constexpr std::array kTexts{"",           "disturbed",     "driver_bound", "driver_unknown", "generator",
                              "backlog",    "wrong_results", "no_results",   "interrupted",    "hung",
                              "impossible", "error"};
  return kTexts.at(static_cast<std::size_t>(cause));
}

const char* text_of(Flag flag) {
  constexpr std::array kTexts{"late_generator", "unsteady", "above_limit"};
  return kTexts.at(static_cast<std::size_t>(flag));
}

void Measurement::judge(Status bad, Cause why, const std::string& text) {
  status = bad;
  cause = why;
  reason = reason.empty() ? text : text + "; " + reason;
}

namespace {

/// A number, or the median of a distribution.
std::optional<double> typical(const Measurement& measured, const Figure& figure) {
  if (const auto number = measured.numbers.find(figure.name); number != measured.numbers.end()) return number->second;
  const auto distribution = measured.histograms.find(figure.name);
  if (distribution == measured.histograms.end()) return std::nullopt;
  return static_cast<double>(distribution->second.first.quantile(0.5));
}

}  // namespace

void set_bounds(std::span<const Figure> figures, const Limits& limits, Measurement& measured) {
  constexpr double kNoise = 1.05;
  for (const Figure& figure : figures) {
    const auto found = typical(measured, figure);
    if (!found) continue;
    const bool rate = figure.better == Better::higher;
    for (const auto& [name, expression] : measured.bounds_of_figures) {
      if (name != figure.name) continue;
      auto value = expression.value(limits);
      if (!value || *value <= 0) continue;
      if (figure.unit == "ns") *value *= 1e9;
      const auto known = measured.bounds.find(name);
      const bool tighter =
          known == measured.bounds.end() || (rate ? *value < known->second.value : *value > known->second.value);
      if (tighter) measured.bounds.insert_or_assign(name, BoundRatio{expression, *value, *found / *value});
    }
    const auto bound = measured.bounds.find(figure.name);
    if (bound == measured.bounds.end()) continue;
    const double ratio = bound->second.ratio;
    if (rate ? ratio > kNoise : ratio < 1 / kNoise) measured.flags.insert(Flag::above_limit);
  }
}

Json to_json(const Expression& expression) {
  using Kind = Expression::Kind;
  switch (expression.kind()) {
    case Kind::number:
      return expression.number();
    case Kind::given:
      return {{"given", expression.name()}, {"value", expression.number()}};
    case Kind::floor:
      return {{"floor", expression.name()}};
    case Kind::ceiling:
      return {{"ceiling", expression.name()}};
    default:
      break;
  }
  Json parts = Json::array();
  for (const Expression& part : expression.parts()) parts.push_back(to_json(part));
  const char* const sign = expression.kind() == Kind::sum       ? "sum"
                           : expression.kind() == Kind::product ? "product"
                                                                : "quotient";
  return {{sign, std::move(parts)}};
}

Expression expression_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.contains("given")) return given(json["given"], json.at("value"));
  if (json.contains("floor")) return floor_of(json["floor"]);
  if (json.contains("ceiling")) return ceiling_of(json["ceiling"]);
  const auto only = json.begin();
  const std::string& sign = only.key();
  const Json& parts = only.value();
  Expression made = expression_of(parts.at(0));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Expression part = expression_of(parts[i]);
    made = sign == "sum" ? made + part : sign == "product" ? made * part : made / part;
  }
  return made;
}

Json to_json(const Histogram& histogram, unsigned sampled_every) {
  Json index = Json::array(), counts = Json::array();
  for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
    if (histogram.count(i) == 0) continue;
    index.push_back(i);
    counts.push_back(histogram.count(i));
  }
  return {{"min", histogram.min()},
          {"mean", histogram.mean()},
          {"p50", histogram.quantile(0.5)},
          {"p90", histogram.quantile(0.9)},
          {"p99", histogram.quantile(0.99)},
          {"p999", histogram.quantile(0.999)},
          {"max", histogram.max()},
          {"samples", histogram.samples()},
          {"sampled_every", sampled_every},
          {"histogram",
           {{"sub_bucket_bits", Histogram::kSubBucketBits},
            {"index", std::move(index)},
            {"counts", std::move(counts)},
            {"overflow", histogram.overflow()}}}};
}

}  // namespace feedrate
