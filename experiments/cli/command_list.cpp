#include <fmt/format.h>

#include "experiments/cli/commands.hpp"
#include "experiments/measure/catalogue.hpp"

namespace feedrate {
namespace {

void print_member(const Json& one) {
  fmt::print("  {:<15} {}\n", one["name"].get<std::string>(), one["description"].get<std::string>());
  if (one.contains("delivery")) {
    fmt::print("  {:<15}   delivery {}; order {}{}\n", "", one["delivery"].get<std::string>(),
               one["order"].get<std::string>(), one["durable"].get<bool>() ? "; durable" : "");
  }
  if (const auto reason = one.value("unavailable", ""); !reason.empty()) {
    fmt::print("  {:<15}   unavailable: {}\n", "", reason);
  }
}

/// An experiment's axes: its own, then each member's.
void print_axes(const Json& axes, const std::string& experiment) {
  std::string owner_before;
  fmt::print("axes of {}\n", experiment);
  for (const Json& axis : axes) {
    if (axis["experiment"] != experiment) continue;
    std::string owners;
    for (const Json& owner : axis["owners"]) owners += (owners.empty() ? "" : ", ") + owner.get<std::string>();
    if (owners != owner_before) fmt::print("  of {}\n", owners);
    owner_before = owners;
    fmt::print("  {}{:<15} {}\n", owners.empty() ? "" : "  ", axis["name"].get<std::string>(),
               axis["description"].get<std::string>());
  }
}

int list(bool json) {
  const Json all = catalogue();
  if (json) {
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  for (const auto& [kind, members] : all.items()) {
    if (!members.is_array() || kind == "axes" || kind == "floors") continue;
    fmt::print("{}\n", kind);
    for (const Json& one : members) print_member(one);
  }
  for (const Json& experiment : all["experiments"]) print_axes(all["axes"], experiment["name"]);
  return 0;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "experiments, queues, transfers, workloads, devices and axes");
  command->add_flag("--json", *json, "as JSON, with figures and floors");
  command->callback([json, &action] { action = [json] { return list(*json); }; });
}

}  // namespace feedrate
