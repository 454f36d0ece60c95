#include "experiments/harness/sweep/sliced_cell.hpp"

#include <fmt/format.h>

#include <utility>

#include "experiments/harness/measure/statistics.hpp"

namespace feedrate {
namespace {

/// Four significant digits: far finer than a slice, and a row has dozens of them.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

Json figures_of(const Measurement& measured) {
  Json figures = Json::object();
  for (const auto& [name, value] : measured.numbers) figures[name] = rounded(value);
  for (const auto& [name, distribution] : measured.histograms) {
    for (const auto& [part, quantile] : {std::pair{"p50", 0.5}, std::pair{"p99", 0.99}}) {
      figures[fmt::format("{}.{}", name, part)] = rounded(distribution.first.interpolated(quantile));
    }
  }
  return figures;
}

}  // namespace

const Json& SlicedCell::add(Measurement measured, Json place) {
  if (measured.status == Status::ok) {
    place["figures"] = figures_of(measured);
    for (const auto& [name, value] : measured.numbers) numbers_[name].push_back(value);
    if (any_ok_) {
      for (auto& [name, distribution] : measured.histograms) {
        auto& [sum, every] = total_.histograms[name];
        sum.merge(distribution.first);
        every = std::max(every, distribution.second);
      }
    } else {
      total_ = std::move(measured);
    }
    any_ok_ = true;
  } else {
    place["status"] = text_of(measured.status);
    place["cause"] = text_of(measured.cause);
    place["reason"] = measured.reason;
    if (measured.status == Status::failed || !any_failed_) last_bad_ = std::move(measured);
    any_failed_ |= last_bad_.status == Status::failed;
  }
  return slices_.emplace_back(std::move(place));
}

Measurement SlicedCell::total() const {
  if (any_failed_ || !any_ok_) return last_bad_;
  Measurement total = total_;
  for (const auto& [name, values] : numbers_) total.numbers[name] = median_of(values);
  return total;
}

}  // namespace feedrate
