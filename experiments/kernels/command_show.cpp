#include <fmt/format.h>

#include <memory>

#include "experiments/cli/commands.hpp"
#include "experiments/harness/measure/columns.hpp"
#include "kernels/ladder/ladder.hpp"

namespace feedrate::kernels {
namespace {

int show(const std::string& name) {
  const ladder::LadderEntry& entry = ladder::Ladders::instance().get("LADDER", name);
  fmt::print("{}: {}\n", name, entry.description);
  for (const ladder::RungInfo& rung : entry.rungs()) {
    const std::string place = rung.text.is_peer() ? "peer" : fmt::format("{:>2}", rung.text.step);
    fmt::print("\n{} {} ({})\n", place, rung.name, rung.text.device);
    const auto print = [](const char* what, const std::string& text) {
      if (!text.empty()) fmt::print("   {}\n", wrapped(fmt::format("{}: {}", what, text), 5, kColumns - 3));
    };
    print("changes", rung.text.changes);
    print("why it pays", rung.text.reason);
    print("prediction", rung.text.prediction);
    print("made for", rung.text.design);
    print("unavailable", rung.unavailable);
  }
  return 0;
}

void add_kernels(Program& program) {
  CLI::App& command = *program.app.add_subcommand("kernels", "Explain the ladders of kernels.");
  command.require_subcommand(1);
  CLI::App& shown = *command.add_subcommand("show", "Print a ladder: what each rung changes, and why that pays.");
  const auto name = std::make_shared<std::string>();
  shown.add_option("LADDER", *name, "the ladder: " + ladder::Ladders::instance().names())->required();
  program.on_choice(shown, [name] { return show(*name); });
}

const CommandRegistration registered("kernels", add_kernels);

}  // namespace
}  // namespace feedrate::kernels
