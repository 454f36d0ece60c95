#include "experiments/harness/load/axes.hpp"

#include "experiments/harness/load/trace_file.hpp"

namespace feedrate {

const Axes<LoadShape>& load_axes() {
  constexpr double kMaxMicroseconds = 3'600'000'000;
  static const auto axes =
      Axes<LoadShape>()
          .word("arrivals", &LoadShape::arrivals, {"closed", "constant", "poisson", "bursts", "trace"},
                "closed = each result releases the next request; else requests are due by a schedule")
          .number("rate", &LoadShape::rate, {0, 1'000'000'000},
                  "requests per second that are due, of all senders together; 0 = closed load, or a trace's own")
          .number("burst-us", &LoadShape::burst_us, {0, kMaxMicroseconds}, "arrivals bursts: length of a burst")
          .number("pause-us", &LoadShape::pause_us, {0, kMaxMicroseconds}, "arrivals bursts: time between two bursts")
          .text(
              "trace-file", &LoadShape::trace_file, [](const std::string& value) { read_trace(value); },
              "arrivals trace: CSV or JSONL with time (s) and, optionally, payload, priority, workload");
  return axes;
}

}  // namespace feedrate
