#include "experiments/harness/measure/measurement.hpp"

namespace feedrate {

const char* text_of(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::invalid:
      return "invalid";
    case Status::unsustainable:
      return "unsustainable";
    case Status::failed:
      return "failed";
    default:
      return "skipped";
  }
}

const char* text_of(Cause cause) {
  switch (cause) {
    case Cause::none:
      return "";
    case Cause::disturbed:
      return "disturbed";
    case Cause::driver_bound:
      return "driver_bound";
    case Cause::driver_unknown:
      return "driver_unknown";
    case Cause::generator:
      return "generator";
    case Cause::backlog:
      return "backlog";
    case Cause::wrong_results:
      return "wrong_results";
    case Cause::no_results:
      return "no_results";
    case Cause::interrupted:
      return "interrupted";
    case Cause::hung:
      return "hung";
    case Cause::impossible:
      return "impossible";
    default:
      return "error";
  }
}

const char* text_of(Flag flag) {
  switch (flag) {
    case Flag::late_generator:
      return "late_generator";
    case Flag::unsteady:
      return "unsteady";
    default:
      return "above_floor";
  }
}

void Measurement::judge(Status bad, Cause why, const std::string& text) {
  status = bad;
  cause = why;
  reason = reason.empty() ? text : text + "; " + reason;
}

void flag_above_floor(std::span<const Figure> figures, Measurement& measured) {
  constexpr double kNoise = 1.05;
  for (const Figure& figure : figures) {
    const auto bound = measured.bounds.find(figure.name);
    if (bound == measured.bounds.end()) continue;
    const double ratio = bound->second.ratio;
    if (figure.better == Better::higher ? ratio > kNoise : ratio < 1 / kNoise) measured.flags.insert(Flag::above_floor);
  }
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
