#include <fmt/format.h>

#include "common/units.hpp"
#include "experiments/cli/commands.hpp"
#include "experiments/harness/measure/catalogue.hpp"
#include "experiments/harness/measure/experiment.hpp"

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

/// Prints an experiment's axes: first its own, then each member's.
void print_axes(const Json& axes, const std::string& experiment) {
  std::string owner_before;
  fmt::print("axes of {}\n", experiment);
  for (const Json& axis : axes) {
    if (axis["experiment"] != experiment) continue;
    const std::string owners = fmt::format("{}", fmt::join(axis["owners"].get<std::vector<std::string>>(), ", "));
    if (owners != owner_before) fmt::print("  of {}\n", owners);
    owner_before = owners;
    fmt::print("  {}{:<15} {}\n", owners.empty() ? "" : "  ", axis["name"].get<std::string>(),
               axis["description"].get<std::string>());
  }
}

/// Prints an experiment's axes as a Markdown table.
void print_markdown(const Json& axes, const std::string& experiment) {
  fmt::print("| axis | owner | values | default | what it is |\n|---|---|---|---|---|\n");
  for (const Json& axis : axes) {
    if (axis["experiment"] != experiment) continue;
    std::string owners, values;
    for (const Json& owner : axis["owners"]) {
      owners += fmt::format("{}`{}`", owners.empty() ? "" : ", ", owner.get<std::string>());
    }
    if (axis["kind"] == "number") {
      const double least = axis["least"], most = axis["most"];
      values = fmt::format("{} to {}", least, format_count(static_cast<std::uint64_t>(most)));
    } else if (axis["kind"] == "word") {
      for (const Json& value : axis["values"]) values += (values.empty() ? "`" : " `") + value.get<std::string>() + "`";
    } else {
      values = "text";
    }
    const Json& standard = axis["default"];
    fmt::print("| `{}` | {} | {} | {} | {} |\n", axis["name"].get<std::string>(), owners.empty() ? "all" : owners,
               values, standard.is_string() ? "`" + standard.get<std::string>() + "`" : standard.dump(),
               axis["description"].get<std::string>());
  }
}

int list(bool json, const std::string& markdown) {
  const Json all = catalogue();
  if (!markdown.empty()) {
    Experiments::instance().get("--markdown", markdown);
    print_markdown(all["axes"], markdown);
    return 0;
  }
  if (json) {
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  for (const auto& [kind, members] : all.items()) {
    if (!members.is_array() || kind == "axes" || kind == "limits") continue;
    fmt::print("{}\n", kind);
    for (const Json& one : members) print_member(one);
  }
  for (const Json& experiment : all["experiments"]) print_axes(all["axes"], experiment["name"]);
  return 0;
}

}  // namespace

void add_list(Program& program) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      program.app.add_subcommand("list", "list experiments, queues, transfers, workloads, devices and axes");
  command->add_flag("--json", *json, "print JSON, including figures and limits");
  auto markdown = std::make_shared<std::string>();
  command->add_option("--markdown", *markdown, "print the axes of this experiment as a Markdown table");
  program.on_choice(*command, [=] { return list(*json, *markdown); });
}

}  // namespace feedrate
