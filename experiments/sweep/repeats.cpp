#include "experiments/sweep/repeats.hpp"

#include <algorithm>

#include "experiments/measure/statistics.hpp"

namespace feedrate {

bool is_disturbed(const Json& row) {
  return row.value("status", "") == "invalid" && row.value("reason", "").starts_with("disturbed");
}

double spread_of(const std::vector<double>& values) {
  if (values.empty()) return 1;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least > 0 ? *most / *least : 1;
}

bool Repeats::precise() const {
  return relative_half_width_95(throughputs_) <= settings_.throughput_within &&
         relative_half_width_95(latencies_) <= settings_.latency_within;
}

std::string Repeats::why_enough() const {
  if (disturbed_ > settings_.repetitions) return "disturbed";
  if (undisturbed_ < settings_.repetitions) return "";
  if (!settings_.until_precise) return "repetitions";
  if (throughputs_.empty()) return "not ok";
  if (precise()) return "precise";
  if (undisturbed_ + disturbed_ >= settings_.most_repetitions) return "most repetitions";
  return seconds_ >= settings_.time_limit ? "time limit" : "";
}

Json Repeats::add(const Json& row) {
  ++(is_disturbed(row) ? disturbed_ : undisturbed_);
  seconds_ += row["time"]["duration_seconds"].get<double>();
  if (row["status"] == "ok") {
    throughputs_.push_back(row["throughput"]["messages_per_second"]);
    latencies_.push_back(row["latency_ns"][settings_.percentile]);
    p50s_.push_back(row["latency_ns"]["p50"]);
    p99s_.push_back(row["latency_ns"]["p99"]);
  }
  if (row["status"] == "skipped") {
    stop_ = "not ok";
    return {};
  }
  stop_ = why_enough();
  if (stop_.empty()) return {};
  Json stop{{"reason", stop_}, {"repetitions", undisturbed_}, {"disturbed", disturbed_}};
  if (throughputs_.size() >= 2) {
    stop["throughput_half_width"] = relative_half_width_95(throughputs_);
    stop["latency_half_width"] = relative_half_width_95(latencies_);
    stop["percentile"] = settings_.percentile;
    stop["spread"] = {{"throughput", spread_of(throughputs_)}, {"p50", spread_of(p50s_)}, {"p99", spread_of(p99s_)}};
    stop["unstable"] = Json::array();
    for (const auto& [name, most] :
         {std::pair{"throughput", kUnstableThroughput}, {"p50", kUnstableP50}, {"p99", kUnstableP99}}) {
      if (stop["spread"][name] >= most) stop["unstable"].push_back(name);
    }
  }
  return stop;
}

}  // namespace feedrate
