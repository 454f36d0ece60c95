#include "experiments/feeding/row_json.hpp"

namespace feedrate {

Json to_json(const Counts& counts) {
  return {{"sent", counts.sent},           {"received", counts.received},
          {"lost", counts.lost},           {"duplicated", counts.duplicated},
          {"corrupted", counts.corrupted}, {"reordered", counts.reordered}};
}

Json to_json(const Histogram& histogram, unsigned sample_every) {
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
          {"sampled_every", sample_every},
          {"histogram",
           {{"sub_bucket_bits", Histogram::kSubBucketBits},
            {"index", std::move(index)},
            {"counts", std::move(counts)},
            {"overflow", histogram.overflow()}}}};
}

Json to_json(const std::array<Histogram, kStages>& stages) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kStages; ++i) {
    const Histogram& stage = stages[i];
    if (stage.samples() == 0) continue;
    json[kStageNames[i]] = {{"mean", stage.mean()},
                            {"p50", stage.quantile(0.5)},
                            {"p99", stage.quantile(0.99)},
                            {"samples", stage.samples()}};
  }
  return json;
}

}  // namespace feedrate
