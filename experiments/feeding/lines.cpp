#include "experiments/feeding/answer.hpp"

#include <fmt/format.h>

#include "common/units.hpp"

namespace feedrate {
namespace {

/// Parts of a distribution as text, for example "p50 12 µs, p99 …".
std::string parts(const Json& distribution, const std::vector<std::pair<const char*, const char*>>& names) {
  std::string text;
  for (const auto& [key, name] : names) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format_ns(distribution[key]));
  }
  return text;
}

void add_open_load(const Json& row, std::vector<std::pair<std::string, std::string>>& lines) {
  const std::vector<std::pair<const char*, const char*>> three{{"p50", "p50"}, {"p99", "p99"}, {"max", "max"}};
  const Json& load = row["details"]["load"];
  lines.emplace_back("service", parts(row["figures"]["service_ns"], three));
  lines.emplace_back(
      "send lag",
      fmt::format("{}; the generator's own part p50 {}, p99 {}", parts(row["figures"]["send_lag_ns"], three),
                  format_ns(load["own_lag_ns"]["p50"]), format_ns(load["own_lag_ns"]["p99"])));
  lines.emplace_back("backlog", fmt::format("{:.0f} messages at the end, maximum {:.0f}; {} of {} due were never sent",
                                            load["backlog"]["end"].get<double>(), load["backlog"]["max"].get<double>(),
                                            load["unsent"].dump(), load["due"].dump()));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> feeding_lines(const ExperimentInfo& info, const Json& row) {
  std::vector<std::pair<std::string, std::string>> lines;
  const Json details = row.value("details", Json::object());
  if (details.contains("counts")) {
    const Json& counts = details["counts"];
    lines.emplace_back(
        "messages", fmt::format("{} sent, {} received, {} lost, {} duplicated, {} corrupted, {} reordered",
                                counts["sent"].dump(), counts["received"].dump(), counts["lost"].dump(),
                                counts["duplicated"].dump(), counts["corrupted"].dump(), counts["reordered"].dump()));
  }
  if (!row.contains("figures")) return lines;
  const Json &figures = row["figures"], &latency = figures["latency_ns"];
  lines.emplace_back("throughput", fmt::format("{}, {} of payload each way",
                                               info.text("messages_per_second", figures["messages_per_second"]),
                                               info.text("bytes_per_second", figures["bytes_per_second"])));
  const bool open = details.contains("load");
  lines.emplace_back(
      open ? "response" : "latency",
      fmt::format("{} ({} samples, every {})",
                  parts(latency, {{"p50", "p50"}, {"p90", "p90"}, {"p99", "p99"}, {"p999", "p99.9"}, {"max", "max"}}),
                  latency["samples"].dump(), latency["sampled_every"].dump()));
  if (open) add_open_load(row, lines);
  const Json bounds = row.value("bounds", Json::object());
  if (bounds.contains("messages_per_second")) {
    lines.emplace_back("of its limit", fmt::format("throughput {:.1f} % of {}",
                                                   100 * bounds["messages_per_second"]["ratio"].get<double>(),
                                                   expression_of(bounds["messages_per_second"]["bound"]).text()));
  }
  if (bounds.contains("latency_ns")) {
    lines.emplace_back("", fmt::format("p50 {:.2f} × {}", bounds["latency_ns"]["ratio"].get<double>(),
                                       expression_of(bounds["latency_ns"]["bound"]).text()));
  }
  if (details.contains("driver")) {
    lines.emplace_back("", fmt::format("{:.1f} % of the rate of the load generator alone",
                                       100 * details["driver"]["ratio"].get<double>()));
  }
  return lines;
}

}  // namespace feedrate
